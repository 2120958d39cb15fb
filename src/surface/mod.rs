//! What of an endpoint can steer a model, and what may pass because of it. Pure: no I/O, no clock.

pub mod canon;
pub mod content;
pub mod declared;
pub mod difference;
pub mod gate;
pub mod hash;
pub mod layout;
pub mod lockfile;
pub mod observed;
pub mod parameter_header;
pub mod pin;
pub mod seal;

pub use content::{Item, Surface};
pub use declared::DeclaredHash;
pub use difference::Difference;
pub use gate::{Admitted, Cleared, Gate, Refusal};
pub use hash::{Digest, ExpectedHash, SurfaceHash};
pub use lockfile::{Authorization, BadLock, Lock};
pub use observed::{Kind, List, Observed};
pub use parameter_header::ParameterHeaders;
pub use pin::{Mismatch, Pin, Unverified, Verified};
pub use seal::Seal;
