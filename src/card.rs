//! What a rank tells the others about its rails, as one string in the launcher's key-value space.

/// Addresses of the rails of one rank, with their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) rails: Vec<(u8, String)>,
}

impl Card {
    /// `0=10.0.0.1/24:4000;1=10.0.1.1/24:4001`
    pub(crate) fn encode(&self) -> String {
        let entries: Vec<String> =
            self.rails.iter().map(|(number, address)| format!("{number}={address}")).collect();
        entries.join(";")
    }

    /// None if the text is not a card.
    pub(crate) fn decode(text: &str) -> Option<Card> {
        let entry = |entry: &str| {
            let (number, address) = entry.split_once('=')?;
            Some((number.parse().ok()?, address.to_string()))
        };
        let rails = text.split(';').filter(|e| !e.is_empty()).map(entry).collect::<Option<_>>()?;
        Some(Card { rails })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_survives_the_trip_and_garbage_is_refused() {
        let card = Card { rails: vec![(0, "10.0.0.1/24:1".into()), (3, "fd00::1/64:2".into())] };
        assert_eq!(Card::decode(&card.encode()), Some(card));
        assert_eq!(Card::decode(""), Some(Card::default()));
        assert_eq!(Card::decode("x=1"), None);
        assert_eq!(Card::decode("1"), None);
    }
}
