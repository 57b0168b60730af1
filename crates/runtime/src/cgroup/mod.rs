//! Control groups: the layout of the host, and the life of a container's group.
