//! Scratch.
use quipu::*; use quipu_medium::*; use std::time::Instant;
fn main(){
  let a: Vec<String> = std::env::args().collect();
  let n: u64 = a[1].parse().unwrap(); let what=&a[2];
  let region = Region::dram(4<<30, Pages::Huge).unwrap(); region.prefault(0,4<<30).unwrap();
  let s = Store::create_on(region, &Options::default()).unwrap();
  let mut c = s.client();
  let key=|i:u64|{ let mut k=[0u8;16]; k[..8].copy_from_slice(&i.wrapping_mul(0x9e3779b97f4a7c15).to_le_bytes()); k};
  let v=[7u8;200];
  let t=Instant::now();
  for i in 0..n { c.put(&key(i),&v).unwrap(); }
  println!("insert {:.2}", n as f64/t.elapsed().as_secs_f64()/1e6);
  let perm=|i:u64| (i.wrapping_mul(2654435761))%n;
  if what.contains('g'){ let mut out=Vec::new(); for _ in 0..2 {
   let t=Instant::now();
   for i in 0..n { assert!(c.get_into(&key(perm(i)),&mut out).unwrap()); }
   println!("get {:.2}", n as f64/t.elapsed().as_secs_f64()/1e6);} }
  if what.contains('m'){ for _ in 0..2 { let mut hits=0;
   let t=Instant::now();
   let mut keys=[[0u8;16];32];
   for b in 0..n/32 { for j in 0..32 {keys[j]=key(perm(b*32+j as u64));} let mut out=[0u8;200]; c.get_many(&keys, |_,v| {out.copy_from_slice(v.unwrap()); hits+=out[3] as u64;}).unwrap(); }
   println!("get_many {:.2} {}", n as f64/t.elapsed().as_secs_f64()/1e6,hits);} }
  if what.contains('u'){ 
   let t=Instant::now();
   for i in 0..n { c.put(&key(perm(i)),&v).unwrap(); }
   println!("update {:.2}", n as f64/t.elapsed().as_secs_f64()/1e6); }
  if what.contains('d'){ 
   let t=Instant::now();
   for i in 0..n { c.delete(&key(perm(i))).unwrap(); }
   println!("delete {:.2}", n as f64/t.elapsed().as_secs_f64()/1e6); }
  println!("{:?}", s.stats());
}
