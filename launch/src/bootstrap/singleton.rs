//! A job of one process that nobody launched.

use std::collections::HashMap;

use super::Bootstrap;
use crate::{LaunchError, Secret};

/// Rank 0 of 1; its values never leave the process.
pub struct Singleton {
    values: HashMap<String, String>,
    secret: Secret,
    job: String,
}

impl Singleton {
    pub fn new() -> Result<Singleton, LaunchError> {
        let job = format!("singleton-{}", std::process::id());
        Ok(Singleton { values: HashMap::new(), secret: Secret::random()?, job })
    }
}

impl Bootstrap for Singleton {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError> {
        // The same rules as under a launcher, so that a program does not work alone only.
        crate::pmi::value::check_key(key, crate::pmi::server::KEY_MAX)?;
        if self.values.contains_key(key) {
            return Err(LaunchError::Refused {
                doing: format!("put key {key}"),
                why: "it was put before".into(),
            });
        }
        self.values.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn fence(&mut self) -> Result<(), LaunchError> {
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        Ok(self.values.get(key).cloned())
    }

    fn nodes(&self) -> &[u32] {
        &[0]
    }

    fn program(&self) -> Option<u32> {
        Some(0)
    }

    fn secret(&self) -> [u8; 32] {
        self.secret.bytes()
    }

    fn job(&self) -> &str {
        &self.job
    }

    fn abort(&mut self, code: i32, why: &str) {
        nmad_words::tell_user(format_args!("nmad: the job ends with code {code}: {why}"));
    }

    fn finish(self: Box<Self>) -> Result<(), LaunchError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_job_of_its_own() {
        let mut alone = Singleton::new().unwrap();
        assert_eq!((alone.rank(), alone.size(), alone.nodes()), (0, 1, &[0][..]));
        assert_eq!(alone.program(), Some(0));
        alone.put("card-0", "any text").unwrap();
        assert!(alone.put("card-0", "again").is_err());
        alone.fence().unwrap();
        assert_eq!(alone.get("card-0").unwrap().as_deref(), Some("any text"));
        assert_eq!(alone.get("card-1").unwrap(), None);
        Box::new(alone).finish().unwrap();
    }
}
