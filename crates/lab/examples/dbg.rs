//! Debug.
use quipu_lab::crash::*; use quipu::*;
fn main(){
  for t in [Twin::PublishBeforePersist, Twin::LifeLeftOut, Twin::AppendAfterRecovery] {
  for seed in [1u64, 1000, 2000,3000,4000,5000,6000,7000] {
  let r = explore(&CrashConfig{states:2000, seed, workers:2, twin:Some(t), ..Default::default()}, &mut |_,_|{});
  print!("{t:?} states {} runs {} viol {}; ", r.states, r.runs, r.violations);
  } println!(); }
}
