//! What of an endpoint can steer a model, and what may pass because of it. Pure: no I/O, no clock.

pub mod canon;
pub mod content;
pub mod declared;
pub mod difference;
pub mod findings;
pub mod front_matter;
pub mod gate;
pub mod hash;
pub mod layout;
pub mod lockfile;
mod look_alike;
pub mod observed;
pub mod parameter_header;
pub mod pin;
mod reads_like;
pub mod seal;
pub mod skill;
pub mod skill_file;
pub mod skill_uri;
mod text_walk;

pub use content::{Item, Surface};
pub use declared::DeclaredHash;
pub use difference::Difference;
pub use findings::{Finding, findings};
pub use gate::{Admitted, Cleared, Gate, Refusal};
pub use hash::{Digest, ExpectedHash, SurfaceHash};
pub use lockfile::{Authorization, BadLock, Lock};
pub use observed::{Kind, List, Observed, Offers};
pub use parameter_header::ParameterHeaders;
pub use pin::{Mismatch, Pin, Unverified, Verified};
pub use seal::Seal;
pub use skill::Skills;
pub use skill_file::VerifiedFile;
