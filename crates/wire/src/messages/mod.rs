//! The formats of RoCEv2 and of fast congestion notification, one module per format.

pub mod bth;
pub mod cnm;
pub mod cnp;
pub mod csig;
pub mod fast_cnp;
pub mod icrc;
pub mod ioam;
pub mod mad;
pub mod pfc;
pub mod proxy_address;
pub mod proxy_cn;
pub mod rdma_cm;
pub mod wan_fcn;
