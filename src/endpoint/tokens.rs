//! Where the bearer token of a request comes from. The endpoint's requests ask for it; a sign-in answers.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::challenge::Challenge;
use super::trouble::Trouble;
use crate::secret::AccessToken;

/// A token, and the sign-in that it comes from: a session belongs to one sign-in, for it may be another person's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What is sent (RFC 6750 §2.1).
    pub access: AccessToken,
    /// Tells sign-ins apart. Stays the same when a token is renewed.
    pub sign_in: u64,
}

/// What is waited for.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

/// Gives out tokens.
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// The token for the next request, renewed where it is about to end. `None`: there is none, and the endpoint is asked
    /// without.
    fn token(&self) -> Pending<'_, Option<Token>>;

    /// Another one in place of a token that the endpoint refused. `None`: there is no other.
    fn another(&self, refused: Token) -> Pending<'_, Option<Token>>;

    /// The endpoint acted on a request with this token: if it refuses it later, then not for what it is.
    fn accepted(&self, _: &Token) {}

    /// The endpoint needs these scopes, which the token lacks: the next sign-in is to ask for them.
    fn lacks(&self, scopes: &[String]);

    /// Asks the user to sign in and waits for it, as long as that may take.
    fn sign_in(&self, challenge: Challenge) -> Pending<'_, ()>;

    /// What to say while the user is being asked.
    fn waiting(&self) -> Option<Trouble> {
        None
    }

    /// The command that signs in, where that is possible.
    fn login(&self) -> Option<Arc<str>>;
}

/// A pasted token, or none: nothing is renewed and nobody is asked.
#[derive(Debug)]
pub struct Fixed(pub Option<AccessToken>);

impl TokenSource for Fixed {
    fn token(&self) -> Pending<'_, Option<Token>> {
        let token = self.0.clone().map(|access| Token { access, sign_in: 0 });
        Box::pin(std::future::ready(Ok(token)))
    }

    fn another(&self, _: Token) -> Pending<'_, Option<Token>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn lacks(&self, _: &[String]) {}

    fn sign_in(&self, challenge: Challenge) -> Pending<'_, ()> {
        let had_token = self.0.is_some();
        Box::pin(std::future::ready(Err(Trouble::SignInRequired {
            had_token,
            login: None,
            challenge: Box::new(challenge),
        })))
    }

    fn login(&self) -> Option<Arc<str>> {
        None
    }
}
