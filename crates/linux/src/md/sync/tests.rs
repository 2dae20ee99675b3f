#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;

/// As kernel 6.1 wrote it during a check of RAID 10, with an idle array above.
const MDSTAT: &str = "Personalities : [linear] [raid0] [raid1] [raid10] 
md12 : active raid1 vdf[1] vde[0]
      522240 blocks super 1.2 [2/2] [UU]
      
md127 : active raid10 vdd[3] vdc[2] vdb[1] vda[0]
      522240 blocks super 1.2 64K chunks 2 near-copies [4/4] [UUUU]
      [=>...................]  check =  8.3% (43584/522240) finish=0.1min speed=43584K/sec
      bitmap: 0/1 pages [0KB], 65536KB chunk

unused devices: <none>
";

#[test]
fn the_live_position_is_that_of_the_array_asked_for() {
    assert_eq!(live(MDSTAT, "md127"), Some(Sectors(2 * 43_584)));
    for name in ["md12", "md1", "md", "md128", ""] {
        assert_eq!(live(MDSTAT, name), None, "{name}");
    }
}

#[test]
fn knobs_are_put_back_to_what_the_kernel_showed() {
    for (knob, shown, written) in [
        (Knob::SpeedMin, "1000 (system)", Some("system")),
        (Knob::SpeedMax, "2000000 (local)\n", Some("2000000")),
        (Knob::SpeedMax, "2000000", None),
        (Knob::SpeedMax, "2000000 (other)", None),
        (Knob::Max, "max", Some("max")),
        (Knob::Max, "44672", Some("44672")),
        (Knob::Max, "none", None),
        (Knob::Min, "0", Some("0")),
        (Knob::IoDepth, "32 (system)", Some("system")),
        (Knob::IoDepth, "8 (local)", Some("8")),
        (Knob::StripeCache, "256", Some("256")),
        (Knob::StripeCache, "", None),
    ] {
        assert_eq!(knob.to_write(shown).as_deref(), written, "{knob:?} {shown}");
    }
    for knob in Knob::ALL {
        assert_eq!(Knob::of_file(knob.file()), Some(knob));
    }
}

#[test]
fn an_id_is_written_as_mdadm_does() {
    assert_eq!(
        as_mdadm_writes("42a903bc-285c-4385-a4ec-0a93132a224d").as_deref(),
        Some("42a903bc:285c4385:a4ec0a93:132a224d")
    );
    for none in ["", "none", "00000000-0000-0000-0000-000000000000", "42"] {
        assert_eq!(as_mdadm_writes(none), None, "{none}");
    }
}

#[test]
fn a_file_that_the_kernel_does_not_have_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let sync = Sync {
        folder: folder.path().to_path_buf(),
        mdstat: folder.path().join("mdstat"),
        dev: folder.path().join("dev"),
        name: "md0".to_owned(),
    };
    let error = sync.turn(Knob::Max, "max").unwrap_err().to_string();
    assert!(error.contains("sync_max could not be written"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!((sync.knob(Knob::Max), sync.live()), (None, None));
    assert!(sync.look().is_err() && !sync.is_there());
}

proptest! {
    #[test]
    fn what_is_written_for_a_speed_means_what_was_shown(kib: u64, local: bool) {
        let shown = format!("{kib} ({})", if local { "local" } else { "system" });
        let speed = Speed::parse(&shown).unwrap();
        prop_assert_eq!(speed, Speed { kib, local });
        prop_assert_eq!(speed.to_write() == "system", !local);
    }

    #[test]
    fn what_is_written_for_an_end_is_read_back(sectors: u64) {
        for until in [Until::End, Until::At(Sectors(sectors))] {
            prop_assert_eq!(Until::parse(&until.to_write()), Some(until));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String, name: String) {
        let _ = (Speed::parse(&text), Until::parse(&text), Action::parse(&text));
        let _ = (as_mdadm_writes(&text), live(&text, &name));
        for knob in Knob::ALL {
            let _ = knob.to_write(&text);
        }
    }
}
