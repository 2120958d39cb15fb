//! What of an endpoint can steer a model, and what may pass because of it. Pure: no I/O, no clock.

pub mod gate;
pub mod observed;
pub mod parameter_header;

pub use gate::{Admitted, Cleared, Gate, Refusal};
pub use observed::{Kind, List, Observed};
pub use parameter_header::ParameterHeaders;
