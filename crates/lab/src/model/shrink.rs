//! Making a failing sequence short.

/// The shortest sequence found that still fails: everything behind the failure is cut off, then pieces are
/// left out, from halves down to single steps. `fails` tells at which step a sequence fails, if it does.
pub fn shrink<T: Clone>(steps: &[T], mut fails: impl FnMut(&[T]) -> Option<usize>) -> Vec<T> {
    let mut shortest = steps.to_vec();
    if let Some(at) = fails(&shortest) {
        shortest.truncate(at + 1);
    }
    let mut piece = shortest.len() / 2;
    while piece > 0 {
        let mut start = 0;
        while start < shortest.len() {
            let mut shorter = shortest.clone();
            shorter.drain(start..(start + piece).min(shortest.len()));
            match fails(&shorter) {
                Some(at) => {
                    shorter.truncate(at + 1);
                    shortest = shorter;
                }
                None => start += piece,
            }
        }
        piece /= 2;
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        // Fails at the first 9 that has a 3 and a 5 before it.
        let fails = |steps: &[u32]| {
            (0..steps.len())
                .find(|at| steps[*at] == 9 && [3, 5].iter().all(|early| steps[..*at].contains(early)))
        };
        let steps: Vec<u32> = [1, 5, 2, 9, 8, 3, 3, 7, 9, 4, 9].into_iter().cycle().take(200).collect();
        assert_eq!(shrink(&steps, fails).len(), 3);
        assert_eq!(shrink(&[1, 2, 3], fails), [1, 2, 3], "what does not fail stays as it is");
    }
}
