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
	started bool
	ordinal uint64 // of the group that the cursor is in
	at      int    // bytes of it that were taken
	frames  int
	low     uint64
	high    uint64
	pinned  *group
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

// Close ends the cursor. A second call does nothing. Shared bytes that were not
// released count as released.
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
	c.releaseLocked()
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
	c.started = false
}

// Take appends the frames that the cursor has not taken to dst, or returns them
// as Step.Shared if they are many, and moves past them. A closed cursor is Idle.
// While shared bytes are out, the cursor must not be used but for Release,
// Close, SetRange and Rewind.
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
	step := Step{Kind: MoreFrames, Sequence: g.sequence}
	if !c.started || c.ordinal != t.ordinal {
		step.Kind = NewGroup
		if c.started {
			step.Superseded = t.ordinal - c.ordinal - 1
			step.Cut = c.behindLocked()
		}
		c.started, c.ordinal, c.at, c.frames = true, t.ordinal, 0, 0
	} else if c.at == len(g.bytes) {
		return dst, c.endLocked()
	}
	step.Frames = g.frames - c.frames
	rest := g.bytes[c.at:]
	c.at, c.frames = len(g.bytes), g.frames
	if len(rest) > InlineBytes {
		g.pins++
		c.pinned = g
		step.Shared = rest[:len(rest):len(rest)]
		return dst, step
	}
	return append(dst, rest...), step
}

// behindLocked says whether the cursor's group, which is not the newest any
// more, got frames that the cursor did not take. Only the last group's length is
// known; of older ones it says yes if any group since could have grown.
func (c *Cursor) behindLocked() bool {
	t := c.track
	if c.ordinal == t.ordinal-1 {
		return c.frames != t.framesBefore
	}
	return c.ordinal <= t.grown
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

// Release gives the shared bytes of the last Take back.
func (c *Cursor) Release() {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	c.releaseLocked()
}

func (c *Cursor) releaseLocked() {
	if c.pinned != nil {
		c.pinned.pins--
		c.pinned = nil
	}
}
