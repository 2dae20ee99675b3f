#![no_main]
libfuzzer_sys::fuzz_target!(|text: &str| { if let Ok(g) = text.parse::<lab::spec::VolumeGroup>() { for v in g.volumes() { let _ = v.scaled(0.1); } } });
