//! The word that was probably meant by an unknown one.

/// The one of these words that is nearest, if it is near.
pub fn nearest<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let distance = |word: &'w str| (strsim::damerau_levenshtein(&wrong.to_lowercase(), word), word);
    let near = |(distance, word): &(usize, &str)| *distance > 0 && distance * 3 <= word.len();
    words.into_iter().map(distance).filter(near).min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// A refusal with the word that was probably meant, if there is one.
pub fn with_nearest<'w>(refusal: String, wrong: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    match nearest(wrong, words) {
        Some(word) => format!("{refusal}; did you mean {word}?"),
        None => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_words() {
        let words = ["quipu", "viper", "viper-pacman", "flatstore-h"];
        for (wrong, meant) in [("qiupu", "quipu"), ("vyper", "viper"), ("flatstore", "flatstore-h")] {
            assert_eq!(nearest(wrong, words), Some(meant));
        }
        for other in ["abacus", "", "rocksdb"] {
            assert_eq!(nearest(other, words), None);
        }
    }
}
