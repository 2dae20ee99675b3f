#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;

/// `/proc/mdstat` of kernel 6.1 during a check of RAID 10, with an idle array above.
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
fn the_live_position_is_that_of_the_array_requested() {
    assert_eq!(live(MDSTAT, "md127"), Some(Sectors(2 * 43_584)));
    for name in ["md12", "md1", "md", "md128", ""] {
        assert_eq!(live(MDSTAT, name), None, "{name}");
    }
}

#[test]
fn tunables_are_put_back_to_what_the_kernel_showed() {
    for (tunable, shown, written) in [
        (Tunable::SpeedMin, "1000 (system)", Some("system")),
        (Tunable::SpeedMax, "2000000 (local)\n", Some("2000000")),
        (Tunable::SpeedMax, "2000000", None),
        (Tunable::SpeedMax, "2000000 (other)", None),
        (Tunable::Max, "max", Some("max")),
        (Tunable::Max, "44672", Some("44672")),
        (Tunable::Max, "none", None),
        (Tunable::Min, "0", Some("0")),
        (Tunable::IoDepth, "32 (system)", Some("system")),
        (Tunable::IoDepth, "8 (local)", Some("8")),
        (Tunable::StripeCache, "256", Some("256")),
        (Tunable::StripeCache, "", None),
    ] {
        assert_eq!(
            tunable.to_write(shown).as_deref(),
            written,
            "{tunable:?} {shown}"
        );
    }
    for tunable in Tunable::ALL {
        assert_eq!(Tunable::of_file(tunable.file()), Some(tunable));
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
    let error = sync.turn(Tunable::Max, "max").unwrap_err().to_string();
    assert!(error.contains("sync_max could not be written"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!((sync.tunable(Tunable::Max), sync.live()), (None, None));
    assert!(sync.state().is_err() && !sync.is_there());
}

proptest! {
    #[test]
    fn a_speed_is_written_as_it_was_shown(kib: u64, local: bool) {
        let shown = format!("{kib} ({})", if local { "local" } else { "system" });
        let speed = SpeedLimit::parse(&shown).unwrap();
        prop_assert_eq!(speed, SpeedLimit { kib, local });
        prop_assert_eq!(speed.to_write() == "system", !local);
    }

    #[test]
    fn an_end_is_written_as_it_is_read(sectors: u64) {
        for until in [SyncMax::End, SyncMax::At(Sectors(sectors))] {
            prop_assert_eq!(SyncMax::parse(&until.to_write()), Some(until));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String, name: String) {
        let _ = (SpeedLimit::parse(&text), SyncMax::parse(&text), SyncAction::from_name(&text));
        let _ = (as_mdadm_writes(&text), live(&text, &name));
        for tunable in Tunable::ALL {
            let _ = tunable.to_write(&text);
        }
    }
}
