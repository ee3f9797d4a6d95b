//! Scratch.
use quipu_lab::bench::*;
#[global_allocator]
static A: alloc::Counting = alloc::Counting;
fn main(){
  let args: Vec<String> = std::env::args().collect();
  let n: u64 = args[1].parse().unwrap();
  let t: usize = args[2].parse().unwrap();
  let c = Config{records:n, operations:n, threads:t, roofline:true, ..Config::default()};
  let mut rows=vec![];
  ops(&c, &Silent, &mut |r| rows.push(r.clone())).unwrap();
  println!("{}", table(&rows));
}
