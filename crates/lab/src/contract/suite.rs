//! The list of checks, and carrying them out one after the other.

use super::fixture::{Fixture, Medium, Outcome};
use super::{batches, calls, closures, concurrency, durability, expiry, large, limits, order, slots, space};
use quipu::designs::Capabilities;
use quipu::internals::RecordForm;
use quipu::{Design, Setting};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One promise, with the pool that its proof needs.
pub struct Check {
    /// The room of the promise.
    pub room: &'static str,
    /// The promise.
    pub name: &'static str,
    /// Bytes of the pool.
    pub pool: u64,
    /// Bytes of a zone.
    pub zone: u64,
    /// The form of its records, where a design has a choice.
    pub form: RecordForm,
    /// The capability that it needs.
    pub needs: Option<fn(&Capabilities) -> bool>,
    /// Its proof.
    pub run: fn(&Fixture) -> Outcome,
}

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The promise.
    pub check: &'static str,
    /// The design that broke it.
    pub design: Design,
    /// The setting of the design that was chosen, as `NAME=VALUE`; empty if none was.
    pub setting: String,
    /// How.
    pub what: String,
}

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

macro_rules! checks {
    ($($room:ident::$name:ident on $pool:expr, $zone:expr $(, of $form:expr)? $(, if $needs:expr)?;)+) => {
        &[$(Check {
            room: stringify!($room),
            name: stringify!($name),
            pool: $pool,
            zone: $zone,
            form: checks!(@form $($form)?),
            needs: checks!(@needs $($needs)?),
            run: $room::$name,
        }),+]
    };
    (@form $form:expr) => { $form };
    (@form) => { RecordForm::Variable };
    (@needs $needs:expr) => { Some($needs) };
    (@needs) => { None };
}

/// Every check.
pub const CHECKS: &[Check] = checks! {
    calls::the_last_write_of_a_key_counts on 4 * MIB, 64 * KIB;
    calls::update_sees_the_value_and_decides on 4 * MIB, 64 * KIB;
    calls::put_if_absent_puts_once on 4 * MIB, 64 * KIB;
    calls::compare_and_swap_swaps_only_what_it_expects on 4 * MIB, 64 * KIB;
    calls::update_with_keeps_puts_or_deletes on 4 * MIB, 64 * KIB;
    calls::keys_alone_are_those_of_the_pairs on 4 * MIB, 64 * KIB;
    calls::clear_deletes_every_key on 4 * MIB, 64 * KIB;
    calls::versions_rise_and_are_compared on 4 * MIB, 64 * KIB, if |can| can.versions;
    calls::a_write_is_seen_by_all_at_once on 4 * MIB, 64 * KIB;
    calls::a_leaked_client_leaves_nothing_unseen on 4 * MIB, 64 * KIB;
    calls::get_into_reuses_its_buffer on 4 * MIB, 64 * KIB;
    calls::get_many_answers_every_position on 4 * MIB, 64 * KIB;
    calls::put_many_puts_all_and_the_last_of_a_key_wins on 4 * MIB, 64 * KIB;
    calls::a_refused_batch_writes_nothing on 4 * MIB, 64 * KIB;
    calls::iteration_shows_every_key_once on 16 * MIB, 64 * KIB;
    calls::lent_values_do_not_change on 4 * MIB, 64 * KIB;
    closures::a_closure_reads_its_store_and_does_nothing_else on 4 * MIB, 64 * KIB;
    closures::a_store_may_end_inside_of_a_closure on 4 * MIB, 64 * KIB;
    closures::closures_do_not_wait_for_each_other on 4 * MIB, 64 * KIB;
    batches::a_batch_writes_all_and_the_last_of_a_key_counts on 4 * MIB, 64 * KIB, if |can| can.batches;
    batches::a_batch_that_cannot_be_written_whole_writes_nothing on 4 * MIB, 64 * KIB, if |can| can.batches;
    batches::a_full_pool_takes_batches_that_delete on MIB, 16 * KIB, if |can| can.batches;
    batches::batches_do_not_mix on 4 * MIB, 64 * KIB, if |can| can.batches;
    expiry::what_has_expired_is_absent on 4 * MIB, 64 * KIB, if |can| can.expiry;
    expiry::an_update_sees_and_sets_the_time on 4 * MIB, 64 * KIB, if |can| can.expiry;
    expiry::time_does_not_go_back on 2 * MIB, 16 * KIB, if |can| can.expiry;
    expiry::space_of_what_expires_comes_back on 4 * MIB, 64 * KIB, if |can| can.expiry;
    limits::sizes_up_to_the_limits_are_kept on 8 * MIB, 64 * KIB;
    limits::sizes_up_to_the_limits_are_kept_with_small_zones on 4 * MIB, 16 * KIB;
    limits::sizes_up_to_the_limits_are_kept_with_large_zones on 32 * MIB, 2 * MIB;
    limits::keys_are_bytes on 4 * MIB, 64 * KIB;
    large::sizes_from_one_zone_to_the_limit_are_kept on 2 * MIB, 16 * KIB, if |can| can.value_zones;
    large::every_call_takes_and_shows_large_values on 4 * MIB, 64 * KIB, if |can| can.large_values;
    large::a_key_is_overwritten_for_ever_in_a_small_pool on MIB, 16 * KIB, if |can| can.large_values;
    large::a_deleted_value_makes_room_in_a_full_pool on MIB, 16 * KIB, if |can| can.large_values;
    large::a_put_that_finds_no_room_leaves_everything_as_it_was on MIB, 16 * KIB, if |can| can.large_values;
    large::compaction_moves_the_heads_alone on 2 * MIB, 16 * KIB, if |can| can.value_zones;
    large::what_a_guard_may_still_read_is_not_reused on 2 * MIB, 16 * KIB, if |can| can.lends && can.large_values;
    large::threads_overwrite_and_read_large_values on 2 * MIB, 16 * KIB, if |can| can.large_values;
    concurrency::threads_do_not_disturb_each_other on 16 * MIB, 64 * KIB;
    concurrency::updates_are_atomic on 16 * MIB, 64 * KIB;
    concurrency::one_put_if_absent_wins on 16 * MIB, 64 * KIB;
    concurrency::batches_and_single_writes_exclude_each_other on 16 * MIB, 64 * KIB, if |can| can.batches;
    concurrency::iteration_is_exact_under_writers on 16 * MIB, 64 * KIB;
    order::ranges_are_those_of_a_sorted_map on 16 * MIB, 64 * KIB, if |can| can.ordered;
    order::a_range_is_exact_under_writers on 16 * MIB, 64 * KIB, if |can| can.ordered;
    order::prefixes_and_ends_are_those_of_a_sorted_map on 4 * MIB, 64 * KIB, if |can| can.ordered;
    order::a_queue_gives_each_key_once on 4 * MIB, 64 * KIB, if |can| can.ordered;
    order::without_order_a_range_is_refused on 4 * MIB, 64 * KIB, if |can| !can.ordered;
    space::a_pool_is_written_to_for_ever on 4 * MIB, 64 * KIB;
    space::deleted_keys_stay_away_and_their_space_comes_back on 4 * MIB, 64 * KIB;
    space::threads_share_a_pool_that_is_nearly_full on 4 * MIB, 64 * KIB;
    slots::records_of_one_size_are_kept on 4 * MIB, 64 * KIB, of slots::FORM, if |can| can.updates_in_place;
    slots::a_full_pool_of_slots_is_written_to_for_ever on MIB, 64 * KIB, of slots::FORM, if |can| can.updates_in_place;
    slots::an_update_in_place_reads_its_page on 4 * MIB, 64 * KIB, of slots::FORM, if |can| can.updates_in_place;
    slots::updates_in_place_are_atomic on 4 * MIB, 64 * KIB, of slots::FORM, if |can| can.updates_in_place;
    durability::reopening_keeps_everything on 8 * MIB, 64 * KIB;
    durability::a_store_with_clients_does_not_close on 4 * MIB, 64 * KIB;
    durability::a_second_handle_is_refused on 4 * MIB, 64 * KIB;
    durability::a_full_pool_keeps_what_it_has on MIB, 16 * KIB;
    durability::deletes_keep_their_reserve on MIB, 16 * KIB;
    durability::everything_can_be_deleted on MIB, 16 * KIB;
};

/// Settings, by name, with which a design keeps all its promises too.
const SETTINGS: &[(&str, &str)] =
    &[("offset-map", "pm"), ("pacman", "off"), ("grow", "off"), ("index", "alex"), ("entry", "op-last")];

/// Every design as it is, and once for each of its settings.
fn subjects() -> impl Iterator<Item = (Design, Option<(&'static str, &'static str)>)> {
    Design::ALL.iter().flat_map(|design| {
        let is_its_own = |(name, _): &&(&str, &str)| Setting::of(*design).any(|own| own.name == *name);
        let chosen = SETTINGS.iter().filter(is_its_own).map(|setting| Some(*setting));
        [None].into_iter().chain(chosen).map(|setting| (*design, setting))
    })
}

/// Holds every design to the promises of a room, or of all, whose name contains `filter`, on one medium.
pub fn judge(medium: &Medium, room: Option<&str>, filter: &str) -> Vec<Failure> {
    let mut failures = Vec::new();
    for (design, setting) in subjects() {
        let is_ordered = setting == Some(("index", "alex"));
        let can = if is_ordered { design.can().when_ordered() } else { design.can().clone() };
        let can = |check: &&Check| check.needs.is_none_or(|needs| needs(&can));
        let is_asked =
            |check: &&Check| room.is_none_or(|room| check.room == room) && check.name.contains(filter);
        for check in CHECKS.iter().filter(is_asked).filter(can) {
            let mut fixture = Fixture::new(design, medium, pool_of(design, check), check.zone);
            fixture.options.slots.form = check.form;
            if let Some((name, value)) = setting {
                fixture.options = fixture.options.clone().set(name, value).expect("a setting of the design");
            }
            let what = match catch_unwind(AssertUnwindSafe(|| (check.run)(&fixture))) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(panic) => message(&*panic),
            };
            let setting = setting.map_or(String::new(), |(name, value)| format!("{name}={value}"));
            failures.push(Failure { check: check.name, design, setting, what });
        }
    }
    failures
}

/// Bytes of a pool of this design in which as much has room as the check expects.
fn pool_of(design: Design, check: &Check) -> u64 {
    (check.pool + check.pool * design.can().waste / 100).next_multiple_of(4096)
}

/// The message of a panic.
pub fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}
