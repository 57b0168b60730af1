//! Points in time as text.

use std::time::{Duration, SystemTime};

const DAY: u64 = 86_400;

/// The time; 1970 where the kernel tells none.
#[must_use]
pub fn now() -> SystemTime {
    let (seconds, nanoseconds) = pipkin_sys::process::real_time().unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

/// RFC 3339 in UTC with whole seconds: `2026-11-30T23:34:01Z`.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let time = since_epoch(time);
    format!("{}Z", date_and_time(time.as_secs()))
}

/// RFC 3339 in UTC with nanoseconds: `2026-11-30T23:34:01.697873000Z`.
#[must_use]
pub fn rfc3339_nanos(time: SystemTime) -> String {
    let time = since_epoch(time);
    format!(
        "{}.{:09}Z",
        date_and_time(time.as_secs()),
        time.subsec_nanos()
    )
}

/// A time before 1970 is a clock that was never set.
fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn date_and_time(seconds: u64) -> String {
    let (year, month, day) = date(seconds / DAY);
    let rest = seconds % DAY;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// The Gregorian date of a day counted from 1970-01-01. Years are counted from March,
/// so that the day which some years lack is their last.
const fn date(day: u64) -> (u64, u64, u64) {
    const DAYS_BEFORE_1970: u64 = 719_468; // from 0000-03-01
    const FOUR_CENTURIES: u64 = 146_097;
    let day = day + DAYS_BEFORE_1970;
    let in_era = day % FOUR_CENTURIES;
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153; // March is 0
    let in_month = in_year - (153 * month + 2) / 5;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (
        day / FOUR_CENTURIES * 400 + year + next,
        month,
        in_month + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_the_standard_librarys() {
        let before = SystemTime::now();
        let time = now();
        assert!(before <= time && time <= SystemTime::now());
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (1_798_761_600, "2027-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(rfc3339(time), text);
        }
    }

    #[test]
    fn nanoseconds_have_nine_digits() {
        let time = SystemTime::UNIX_EPOCH + Duration::new(1, 5_000);
        assert_eq!(rfc3339_nanos(time), "1970-01-01T00:00:01.000005000Z");
    }
}
