//! Settings as callers give them: by name, and held against those of a pool.

use super::settings::Setting;
use crate::designs::{Design, Recipe};
use crate::engine::site::NewPool;
use crate::options::Options;
use crate::settings::techniques::Shortcut;
use crate::types::error::Error;
use quipu_parts::space::SETTINGS_LEN;

impl Options {
    /// Gives a [setting](crate::Setting) of the design a value, as `--set` of the program does. Name the
    /// design first. [`Setting::of`](crate::Setting::of) lists the settings of a design.
    ///
    /// A pool keeps the settings that [are kept](crate::Setting::is_kept). An opening refuses one of these
    /// that differs from the pool's, as it refuses another [design](Options::design). The others hold for the
    /// handle alone.
    ///
    /// # Errors
    /// [`Error::Option`] for a name that the design does not have and for a value that the setting does not
    /// take. It lists the settings of the design, or the values. Creating or opening a pool of another design
    /// gives the same error.
    ///
    /// ```
    /// use quipu::{Design, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// let options = Options::new().size(64 << 20).design(Design::VIPER).set("offset-map", "pm")?;
    /// let store = Store::create(&path, &options)?;
    /// assert!(store.settings().contains(&("offset-map", "pm".into())));
    /// assert!(Options::new().set("offset-map", "pm").is_err(), "no setting of quipu");
    /// # store.close()?;
    /// let in_dram = Options::new().design(Design::VIPER).set("offset-map", "dram")?;
    /// assert!(Store::open(&path, &in_dram).is_err(), "the index of this pool is in the pool");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(mut self, name: &str, value: &str) -> Result<Options, Error> {
        let setting = Setting::find(self.design.unwrap_or_default(), name)?;
        setting.field.parse(&mut self, value).ok_or_else(|| {
            let values = setting.values();
            Error::Option(format!("the setting {name} does not take {value:?}, but {values}"))
        })?;
        self.given.push((setting.name, value.into()));
        Ok(self)
    }

    /// The settings that were given, with their values, or an error for one that the design does not have.
    pub(crate) fn given_to(&self, design: Design) -> Result<Vec<(&'static Setting, &str)>, Error> {
        self.given.iter().map(|(name, value)| Ok((Setting::find(design, name)?, &**value))).collect()
    }

    /// Refuses settings that the design of a pool does not have, and settings of a pool that differ from
    /// those in its superblock. A setting differs if the pool, created with it, would keep another value than
    /// it does.
    pub(crate) fn agree_with(
        &self,
        design: Design,
        kept: &[u8; SETTINGS_LEN],
        pool: &NewPool,
    ) -> Result<(), Error> {
        let mut given = self.given_to(design)?;
        given.retain(|(setting, _)| setting.is_kept());
        if given.is_empty() {
            return Ok(());
        }
        let Recipe { remember, recall, .. } = design.recipe();
        let mut found = Options::new();
        recall(kept, &mut found)?;
        let mut asked = found.clone();
        for (setting, value) in &given {
            setting.field.parse(&mut asked, value);
        }
        if asked.techniques.shortcut == Shortcut::Auto {
            // The medium that the pool was created on has decided.
            asked.techniques.shortcut = found.techniques.shortcut;
        }
        recall(&remember(&asked, pool), &mut asked)?;
        for (setting, value) in given {
            let (name, own) = (setting.name, setting.value(&found));
            if setting.value(&asked) != own {
                return Err(Error::Option(format!(
                    "{name}={value} was asked for, and this pool of design {design} was created with {name}={own}; \
                     open it without that setting"
                )));
            }
        }
        Ok(())
    }
}
