package frame

import "slices"

// Outcome says what State.Apply did with a frame.
type Outcome uint8

// The outcomes.
const (
	Applied Outcome = iota // the state is exact at the frame's revision
	Partial                // one part of a snapshot; the last is still to come
	Old                    // of an older group or revision; nothing changed
	Gap                    // its base is not held; a newer snapshot is needed
)

var outcomeNames = [...]string{Applied: "applied", Partial: "partial", Old: "old", Gap: "gap"}

// String returns "applied", "partial", "old" or "gap".
func (o Outcome) String() string { return outcomeNames[o] }

// Change is the effect of one frame. Rows may be kept and must not be modified.
type Change struct {
	Outcome  Outcome
	Revision uint64 // of the state after the frame
	// Skipped reports that publications between the held revision and this one
	// were never seen: Entered and Left are the difference over all of them.
	Skipped bool
	Entered []Row        // sorted; of a plain view only
	Left    []Row        // sorted; of a plain view only
	Units   []UnitChange // of parts or of a set's keys: those named by the frame or changed by it
	Closed  *Closed      // the track's last word, whatever the outcome
}

// UnitChange is the effect of one frame on one named part or key of a set.
type UnitChange struct {
	Name    string
	Entered []Row
	Left    []Row
	Removed bool // the set no longer holds the key; its rows are in Left
	Closed  *Closed
}

// State holds the rows of one track and applies its frames. Its zero value is
// empty and ready. It is for one goroutine; the row slices that it hands out
// are never modified and may be shared.
type State struct {
	held     bool // a snapshot was taken: epoch, revision and units are meaningful
	epoch    string
	revision uint64
	units    map[string]unit // a plain view is one unit without a name
	names    []string        // of units, by first appearance

	begun    bool
	sequence uint64          // newest group seen
	next     uint64          // index of the frame that follows in it
	torn     bool            // a frame of the group was missed, so its snapshot is not whole
	pending  map[string]Unit // of a snapshot whose last part is still to come
	order    []string        // of pending, by first appearance
}

type unit struct {
	rows  []Row
	stale *Stale
}

// Held reports whether a snapshot was taken, so that Rows is meaningful.
func (s *State) Held() bool { return s.held }

// Revision returns the commit at which the rows are exact.
func (s *State) Revision() uint64 { return s.revision }

// Epoch returns the epoch of the revision.
func (s *State) Epoch() string { return s.epoch }

// Sequence returns the newest group seen, and false if there is none yet.
func (s *State) Sequence() (uint64, bool) { return s.sequence, s.begun }

// Rows returns the rows of a plain view, sorted.
func (s *State) Rows() []Row { return s.units[""].rows }

// Stale returns why the rows of a plain view are not exact, nil if they are.
func (s *State) Stale() *Stale { return s.units[""].stale }

// Names returns the names of the parts or keys held, in the snapshot's order.
// A plain view is one unit with an empty name.
func (s *State) Names() []string { return slices.Clone(s.names) }

// UnitRows returns the rows of a named part or of a set's key, sorted; nil if
// there is no such unit.
func (s *State) UnitRows(name string) []Row { return s.units[name].rows }

// UnitStale returns why a unit's rows are not exact, nil if they are.
func (s *State) UnitStale(name string) *Stale { return s.units[name].stale }

// Apply applies the frame with this index, counted from 0, of the group with
// this sequence. Groups may be skipped and may come late. A frame whose base is
// held changes the rows by its insert and retract; otherwise its snapshot, if
// it has one, is taken and compared. A frame that contradicts the rows held,
// which a correct writer never sends, counts as a gap, and so does a snapshot
// of which a part was missed.
func (s *State) Apply(sequence, index uint64, f *Frame) Change {
	if s.begun && sequence < s.sequence {
		return Change{Outcome: Old, Revision: s.revision}
	}
	if !s.begun || sequence > s.sequence || index == 0 {
		s.begun, s.sequence, s.next, s.torn = true, sequence, 0, false
		s.dropPending()
	}
	if index != s.next {
		s.torn = true
		s.dropPending()
	}
	s.next = index + 1
	c := s.apply(f, frameUnits(f))
	c.Revision = s.revision
	c.Closed = f.Closed
	return c
}

// frameUnits returns the rows of f by name; those of a plain frame have none.
func frameUnits(f *Frame) []Unit {
	switch {
	case f.Keys != nil:
		return f.Keys
	case f.Parts != nil:
		return f.Parts
	}
	return []Unit{{Rows: f.Rows}}
}

func (s *State) apply(f *Frame, units []Unit) Change {
	same := s.held && f.Epoch == s.epoch
	if same && f.Revision < s.revision {
		s.dropPending()
		return Change{Outcome: Old}
	}
	snapshot := f.Last || slices.ContainsFunc(units, func(u Unit) bool { return u.HasSnapshot })
	if snapshot && !s.torn {
		s.addPending(units)
	}
	if snapshot && !f.Last {
		if s.torn {
			return Change{Outcome: Gap}
		}
		return Change{Outcome: Partial}
	}
	if same && f.HasBase && f.Base == s.revision && f.Revision > s.revision {
		if c, ok := s.patch(f, units); ok {
			s.dropPending()
			return c
		}
	}
	switch {
	case snapshot && !s.torn:
		return s.take(f)
	case snapshot:
	case same && f.Revision == s.revision && !f.HasBase:
		return s.mark(units) // only stale or closed changed
	case same && f.Revision == s.revision, !f.HasBase && f.Closed != nil:
		return Change{Outcome: Old} // a group sent again; a reason without rows
	}
	s.dropPending()
	return Change{Outcome: Gap}
}

func (s *State) dropPending() { s.pending, s.order = nil, nil }

func (s *State) addPending(units []Unit) {
	if s.pending == nil {
		s.pending = make(map[string]Unit, len(units))
	}
	for _, u := range units {
		p, again := s.pending[u.Name]
		if !again {
			s.order = append(s.order, u.Name)
		}
		p.Snapshot = append(p.Snapshot, u.Snapshot...)
		p.Stale, p.Closed = u.Stale, u.Closed
		s.pending[u.Name] = p
	}
}

// patch applies insert and retract of all units, or of none and returns false.
func (s *State) patch(f *Frame, units []Unit) (Change, bool) {
	next := make([]unit, 0, len(units))
	c := Change{}
	for _, u := range units {
		held, known := s.units[u.Name]
		insert, retract := sorted(u.Insert), sorted(u.Retract)
		rows, fits := patched(held.rows, insert, retract)
		if !known || !fits {
			return Change{}, false
		}
		next = append(next, unit{rows: rows, stale: u.Stale})
		c.add(UnitChange{Name: u.Name, Entered: insert, Left: retract, Closed: u.Closed})
	}
	for i, u := range units {
		s.units[u.Name] = next[i]
	}
	s.revision = f.Revision
	return c, true
}

// take makes the pending snapshot the state.
func (s *State) take(f *Frame) Change {
	c := Change{Skipped: s.held && (f.Epoch != s.epoch || f.Revision > s.revision)}
	next := make(map[string]unit, len(s.order))
	for _, name := range s.order {
		p := s.pending[name]
		rows := sorted(p.Snapshot)
		entered, left := difference(s.units[name].rows, rows)
		next[name] = unit{rows: rows, stale: p.Stale}
		c.add(UnitChange{Name: name, Entered: entered, Left: left, Closed: p.Closed})
	}
	for _, name := range s.names {
		if _, there := next[name]; !there {
			c.add(UnitChange{Name: name, Left: s.units[name].rows, Removed: true})
		}
	}
	s.units, s.names = next, s.order
	s.held, s.epoch, s.revision = true, f.Epoch, f.Revision
	s.dropPending()
	return c
}

// mark takes over the stale members of units whose rows stay.
func (s *State) mark(units []Unit) Change {
	c := Change{}
	for _, u := range units {
		if held, known := s.units[u.Name]; known {
			s.units[u.Name] = unit{rows: held.rows, stale: u.Stale}
			c.add(UnitChange{Name: u.Name, Closed: u.Closed})
		}
	}
	return c
}

func (c *Change) add(u UnitChange) {
	if u.Name == "" {
		c.Entered, c.Left = u.Entered, u.Left
		return
	}
	c.Units = append(c.Units, u)
}
