package moq

import (
	"slices"

	"github.com/heddle-live/heddle/protocol"
)

// InlineBytes is the largest group that a cursor copies out whole; of larger
// ones it hands out the shared bytes.
const InlineBytes = 64 << 10

// Kind says what a cursor found.
type Kind uint8

// Kinds of steps.
const (
	// Idle: nothing new.
	Idle Kind = iota
	// NewGroup: the first frames of a group, possibly none.
	NewGroup
	// MoreFrames: further frames of the group of the last NewGroup.
	MoreFrames
	// Finished: the track ended after group End-1, which was taken before.
	Finished
	// Aborted: the track ended with Code; what was not taken is lost.
	Aborted
)

// Step is what Take found and, for frames, took.
type Step struct {
	Kind       Kind
	Sequence   uint64 // of the group
	Frames     int    // number of frames taken
	Superseded uint64 // groups that this cursor will never take, since the last step
	// Cut is set with NewGroup if the cursor's previous group got frames that
	// this cursor never took: its stream must not look complete.
	Cut bool
	// More says that the track has ended: another Take tells how.
	More bool
	// Shared holds the frames instead of dst if they are over InlineBytes. The
	// bytes must not be changed, and must be given back with Release.
	Shared []byte
	End    uint64              // Finished: the first sequence that never comes
	Code   protocol.StreamCode // Aborted
}

// Cursor is one reader's place in a track: always at the newest group. A cursor
// that fell behind skips to the newest. It is safe for concurrent use.
type Cursor struct {
	track *Track
	wake  func()

	// All below are guarded by track.mu.
	index   int // in track.cursors; -1 when closed
	place   place
	before  place // of the last Take, for Undo
	rewound bool
	low     uint64
	high    uint64
	pinned  *group
}

// place is where a cursor is: the group, and what was taken of it.
type place struct {
	started bool
	ordinal uint64
	bytes   int
	frames  int
}

// NewCursor returns a cursor before the newest group. From then on wake is
// called, outside of all locks of this package, after every change of the
// track; it must not block. It may still be called once after Close, by a
// publication that was under way. The cursor is not woken for what is there
// already: Take once to begin with. Close must be called.
func (t *Track) NewCursor(wake func()) *Cursor {
	c := &Cursor{track: t, wake: wake, high: ^uint64(0)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ownCursorsLocked()
	c.index = len(t.cursors)
	t.cursors = append(t.cursors, c)
	return c
}

// Close ends the cursor. A second call does nothing. Shared bytes stay valid
// until they are released.
func (c *Cursor) Close() {
	t := c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.index < 0 {
		return
	}
	t.ownCursorsLocked()
	last := len(t.cursors) - 1
	moved := t.cursors[last]
	t.cursors[c.index] = moved
	moved.index = c.index
	t.cursors[last] = nil
	t.cursors = t.cursors[:last]
	c.index = -1
}

// ownCursorsLocked makes sure that nobody iterates over the list that is about
// to be changed.
func (t *Track) ownCursorsLocked() {
	if t.walks > 0 {
		t.cursors = slices.Clone(t.cursors)
	}
}

// SetRange bounds what the cursor takes to the groups low to high, inclusive.
// Groups outside wait until the range includes them or they are superseded.
func (c *Cursor) SetRange(low, high uint64) {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	c.low, c.high = low, high
}

// Rewind moves the cursor in front of the newest group, so that the next Take
// begins it again under the same sequence.
func (c *Cursor) Rewind() {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	c.rewound = true
}

// Take appends the frames that the cursor has not taken to dst, or returns them
// as Step.Shared if they are many, and moves past them. A closed cursor is Idle.
// While shared bytes are out, Take must not be called.
func (c *Cursor) Take(dst []byte) ([]byte, Step) {
	t := c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.pinned != nil {
		panic("moq: Take before Release")
	}
	if c.index < 0 {
		return dst, Step{}
	}
	if t.ended == aborted {
		return dst, Step{Kind: Aborted, Code: t.code}
	}
	g := t.newest
	if g == nil || g.sequence < c.low || g.sequence > c.high {
		return dst, c.endLocked()
	}
	step := Step{Kind: MoreFrames, Sequence: g.sequence, More: t.ended != running}
	from := c.place
	if !from.started || c.rewound || from.ordinal != t.ordinal {
		step.Kind = NewGroup
		step.Superseded, step.Cut = c.leftLocked()
		from = place{started: true, ordinal: t.ordinal}
	} else if from.frames == g.frames {
		return dst, c.endLocked()
	}
	rest := g.bytes[from.bytes:]
	step.Frames = g.frames - from.frames
	c.before, c.rewound = c.place, false
	from.bytes, from.frames = len(g.bytes), g.frames
	c.place = from
	if len(rest) > InlineBytes {
		g.pins++
		c.pinned = g
		step.Shared = rest[:len(rest):len(rest)]
		return dst, step
	}
	return append(dst, rest...), step
}

// Undo takes the last Take back, which must have returned frames; shared bytes
// count as released. The next Take chooses anew.
func (c *Cursor) Undo() {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	c.releaseLocked()
	c.place = c.before
}

// leftLocked says what the cursor leaves behind when it begins the newest group
// (anew, perhaps): the number of groups that it skips, and whether the group
// that it was in has frames that it did not take. Of older groups than the last
// but one the length is not known; if one could have grown, the answer is yes.
func (c *Cursor) leftLocked() (superseded uint64, cut bool) {
	t, p := c.track, c.place
	switch {
	case !p.started:
		return 0, false
	case p.ordinal == t.ordinal:
		return 0, p.frames != t.newest.frames
	case p.ordinal == t.ordinal-1:
		return 0, p.frames != t.framesBefore
	}
	return t.ordinal - p.ordinal - 1, p.ordinal <= t.grown
}

// endLocked is the step of a cursor that has taken all it may.
func (c *Cursor) endLocked() Step {
	t := c.track
	if t.ended != finished {
		return Step{}
	}
	step := Step{Kind: Finished}
	if t.newest != nil {
		step.End = t.newest.sequence + 1
	}
	return step
}

// AbortCode says whether the track was aborted, and with which code.
func (c *Cursor) AbortCode() (code protocol.StreamCode, ok bool) {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	return c.track.code, c.track.ended == aborted
}

// Evicted says whether the shared bytes that the cursor holds should be released
// at once: too much memory of the track is held by readers of superseded groups,
// and this is the oldest. The cursor is woken when that becomes so.
func (c *Cursor) Evicted() bool {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	return c.pinned != nil && c.pinned.evicted
}

// Release gives the shared bytes of the last Take back.
func (c *Cursor) Release() {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	c.releaseLocked()
}

func (c *Cursor) releaseLocked() {
	if c.pinned == nil {
		return
	}
	g := c.pinned
	c.pinned = nil
	if g.pins--; g.pins == 0 && g != c.track.newest {
		c.track.forgetOldLocked(g)
	}
}
