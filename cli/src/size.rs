//! Sizes on the command line: `8`, `64KiB`, `4M`.

/// Twice of it fits into the memory of the smallest machine that one would measure on.
const MOST: u64 = 1 << 30;

/// Bytes of a size that can be measured.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    match nmad_words::parse_size(text)? {
        bytes if bytes <= MOST => Ok(bytes as usize),
        _ => Err("at most 1GiB can be measured".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert_eq!(parse("4M"), Ok(4 << 20));
        assert!(parse("2G").is_err_and(|why| why.contains("1GiB")));
        assert!(
            parse("4P").is_err_and(|why| why.contains("64KiB"))
                && parse("4T").is_err_and(|why| why.contains("1GiB"))
        );
    }
}
