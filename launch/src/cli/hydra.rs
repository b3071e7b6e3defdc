//! Environment variables of MPICH's launcher, Hydra, with which users set options for all of their jobs. An
//! option on the command line takes precedence.

use clap::ValueEnum;

use super::args::{Launcher, RunArgs, seconds};
use crate::LaunchError;

/// Sets one option from the value of a variable; the error says what the value should be.
type Set = fn(&mut RunArgs, &str) -> Result<(), String>;

/// The variables; the first of two for the same option counts.
const VARIABLES: [(&str, Set); 7] = [
    ("MPIEXEC_TIMEOUT", |args, text| fill(&mut args.timeout, seconds(text)?)),
    ("HYDRA_LAUNCHER", launcher),
    ("HYDRA_BOOTSTRAP", launcher),
    ("HYDRA_LAUNCHER_EXEC", |args, text| fill(&mut args.launcher_exec, text.into())),
    ("HYDRA_BOOTSTRAP_EXEC", |args, text| fill(&mut args.launcher_exec, text.into())),
    ("HYDRA_IFACE", |args, text| fill(&mut args.rails, text.into())),
    ("HYDRA_ENV", environment),
];

/// Sets the options that the command line leaves open.
///
/// # Errors
/// [`LaunchError::Job`] for a variable with an invalid value.
pub fn apply(args: &mut RunArgs, get: &dyn Fn(&str) -> Option<String>) -> Result<(), LaunchError> {
    for (name, set) in VARIABLES {
        if let Some(text) = get(name) {
            let wrong = |why: String| LaunchError::Job(format!("the variable {name} is {text:?}: {why}"));
            set(args, &text).map_err(wrong)?;
        }
    }
    Ok(())
}

fn fill<T>(option: &mut Option<T>, value: T) -> Result<(), String> {
    option.get_or_insert(value);
    Ok(())
}

fn launcher(args: &mut RunArgs, text: &str) -> Result<(), String> {
    if args.launcher == Launcher::Auto {
        args.launcher = Launcher::from_str(text, true).map_err(|_| {
            let all = Launcher::value_variants().iter().filter_map(Launcher::to_possible_value);
            let names: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
            format!("it should be one of {}", names.join(", "))
        })?;
    }
    Ok(())
}

fn environment(args: &mut RunArgs, text: &str) -> Result<(), String> {
    match text {
        "all" => {}
        "none" => args.genvnone = args.genvlist.is_none(),
        _ => match text.strip_prefix("list:") {
            Some(names) if !args.genvnone => {
                fill(&mut args.genvlist, names.split(',').map(Into::into).collect())?;
            }
            Some(_) => {}
            None => return Err("it should be all, none or list:NAME,...".into()),
        },
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn applied(line: &str, variables: &[(&str, &str)]) -> Result<RunArgs, String> {
        let words = line.split(' ').map(std::ffi::OsString::from);
        let mut args = super::super::parse("mpiexec", words).map_err(|error| error.to_string())?;
        let get = |name: &str| variables.iter().find(|(one, _)| *one == name).map(|(_, v)| v.to_string());
        apply(&mut args, &get).map_err(|error| error.to_string())?;
        Ok(args)
    }

    #[test]
    fn variables_set_options_that_the_command_line_leaves_open() {
        let all = [
            ("MPIEXEC_TIMEOUT", "3"),
            ("HYDRA_BOOTSTRAP", "fork"),
            ("HYDRA_LAUNCHER_EXEC", "/x"),
            ("HYDRA_IFACE", "eth1"),
            ("HYDRA_ENV", "list:A,B"),
        ];
        let args = applied("prog", &all).unwrap();
        assert_eq!((args.timeout, args.launcher), (Some(Duration::from_secs(3)), Launcher::Fork));
        assert_eq!((args.launcher_exec.as_deref(), args.rails.as_deref()), (Some("/x"), Some("eth1")));
        assert_eq!(args.genvlist.map(|names| names.len()), Some(2));
        let args =
            applied("--timeout 9 -launcher ssh -launcher-exec /y -iface lo -genvnone prog", &all).unwrap();
        assert_eq!((args.timeout, args.launcher), (Some(Duration::from_secs(9)), Launcher::Ssh));
        assert_eq!((args.launcher_exec.as_deref(), args.rails.as_deref()), (Some("/y"), Some("lo")));
        assert!(args.genvlist.is_none() && args.genvnone);
    }

    #[test]
    fn values_that_make_no_sense_are_refused_with_their_variable() {
        for (name, value, words) in [
            ("MPIEXEC_TIMEOUT", "soon", "number of seconds"),
            ("HYDRA_LAUNCHER", "teleport", "ssh, fork"),
            ("HYDRA_ENV", "some", "list:NAME"),
        ] {
            let error = applied("prog", &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(value) && error.contains(words), "{error}");
        }
    }
}
