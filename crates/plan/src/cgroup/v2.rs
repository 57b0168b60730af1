//! v2 files.

use super::{Limits, Write};
use crate::Invalid;

pub(super) fn pids(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn memory(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn cpu(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn cpuset(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn block(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn hugepages(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn rdma(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn network_class(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn network_priorities(_limits: &Limits) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}

pub(super) fn unified(_limits: &Limits, _host: &super::Host) -> Result<Vec<Write>, Invalid> {
    Ok(Vec::new())
}
