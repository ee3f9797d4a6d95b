//! Debug.
fn main(){
  for t in quipu_parts::space::format_tables() { println!("### {} ({} bytes)", t.name, t.size); for f in t.fields { println!("| `{}` | {} | {} |  |", f.name, f.offset, f.size); } }
  for (n,t) in [("Header",quipu_parts::record::format_table()),("SegmentHeader",quipu_parts::heap::segments::format_table())] { println!("### {n}"); for f in t { println!("| `{}` | {} | {} |  |", f.0,f.1,f.2); } }
}
