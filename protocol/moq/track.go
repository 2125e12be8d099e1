// Package moq holds the live objects of moq-lite: tracks, their newest group,
// and cursors that read it. A track keeps its newest group only, encoded once
// as it goes on the wire; all viewers share that copy. It does no I/O, starts no
// goroutine, and never learns what a frame means. host/views writes tracks;
// protocol/lite reads them through cursors.
//
// Locks: each Track has one, held for a few copies at most; nothing is called
// under it. Wake functions are called without it.
package moq

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// MaxGroupBytes bounds the encoded frames of one group, and so the cache of one
// track: a track that goes over it is aborted with CodeFrameTooLarge.
const MaxGroupBytes = 16 << 20

// MaxHeldBytes bounds the superseded groups of one track that readers hold: over
// it the readers of the oldest are asked to let go, see Cursor.Evicted.
const MaxHeldBytes = 4 * MaxGroupBytes

// Errors of writing to a track.
var (
	// ErrSequence: a group's sequence is not above its predecessor's, or over
	// varint.Max-1.
	ErrSequence = errors.New("group sequence does not rise")
	// ErrTooLarge: the group would exceed MaxGroupBytes; the track is aborted.
	ErrTooLarge = errors.New("group too large")
	// ErrEnded: the track was finished or aborted before.
	ErrEnded = errors.New("track has ended")
	// ErrNoGroup: AppendFrame before the first WriteGroup.
	ErrNoGroup = errors.New("track has no group")
)

// Info are a track's properties, constant for its life. The zero Timescale
// stands for 1,000 units a second.
type Info struct {
	Priority   uint8
	MaxLatency time.Duration // how long caches keep a finished group
	Timescale  uint64        // timestamp units per second
}

// Frame is one frame to be written. Timestamp is in the track's timescale.
// Payload is copied before the call returns; the caller may reuse it.
type Frame struct {
	Timestamp int64
	Payload   []byte
}

// Track is a live track with its newest group. All methods are safe for
// concurrent use; writers (WriteGroup, AppendFrame, Finish) are meant to be one
// goroutine, so that groups follow each other in its order.
type Track struct {
	info Info

	mu      sync.Mutex
	newest  *group // nil before the first group
	ordinal uint64 // number of groups begun, so that cursors count what they skip
	// For Step.Cut: the final frame count of the group before the newest, and
	// the last group that grew after it had begun.
	framesBefore int
	grown        uint64
	ended        end
	code         protocol.StreamCode // for aborted
	// Superseded groups that cursors hold and were not asked to release, the
	// oldest first.
	held      []*group
	heldBytes int

	cursors []*Cursor
	walks   int // publications that iterate over cursors outside the lock
}

type end uint8

const (
	running end = iota
	finished
	aborted
)

// group is one group with its frames as they go on the wire. Bytes that were
// written never change while pins > 0; without pins the next group takes over
// the object and its memory.
type group struct {
	sequence uint64
	bytes    []byte
	frames   int
	last     int64 // timestamp of the last frame
	pins     int   // cursors that hold slices of bytes outside the lock
	evicted  bool  // those cursors are to let go
}

// NewTrack returns a track without groups.
func NewTrack(info Info) *Track {
	if info.Timescale == 0 {
		info.Timescale = 1000
	}
	return &Track{info: info}
}

// Info returns the track's properties.
func (t *Track) Info() Info { return t.info }

// Newest returns the sequence of the newest group; ok is false before the first.
func (t *Track) Newest() (sequence uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest == nil {
		return 0, false
	}
	return t.newest.sequence, true
}

// Cursors returns the number of open cursors: the viewers of the track.
func (t *Track) Cursors() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.cursors)
}

// WriteGroup begins a new newest group with the given frames, possibly none,
// and thereby completes the one before. The sequence must rise. It wakes every
// cursor before it returns. Errors are ErrSequence, ErrTooLarge, ErrEnded and
// varint.ErrRange (a timestamp jump over 2^61), all wrapped; none of them leaves
// half a group, and all but ErrTooLarge leave the track as it was.
func (t *Track) WriteGroup(sequence uint64, frames ...Frame) error {
	t.mu.Lock()
	err := t.writeGroupLocked(sequence, frames)
	return t.unlockAndWake(err)
}

func (t *Track) writeGroupLocked(sequence uint64, frames []Frame) error {
	if t.ended != running {
		return fmt.Errorf("write group %d: %w", sequence, ErrEnded)
	}
	if sequence >= varint.Max || t.newest != nil && sequence <= t.newest.sequence {
		return fmt.Errorf("write group %d: %w", sequence, ErrSequence)
	}
	size := 0
	for i := range frames {
		size += wire.MaxFrameHeaderBytes + len(frames[i].Payload)
	}
	if size > MaxGroupBytes {
		t.endLocked(aborted, protocol.CodeFrameTooLarge)
		return fmt.Errorf("write group %d of %d bytes: %w", sequence, size, ErrTooLarge)
	}
	if err := checkTimestamps(0, frames); err != nil {
		return fmt.Errorf("write group %d: %w", sequence, err)
	}
	g := t.newest
	if g != nil {
		t.framesBefore = g.frames
	}
	if g == nil || g.pins > 0 {
		t.holdLocked(g)
		g = new(group)
		t.newest = g
	}
	*g = group{sequence: sequence, bytes: recycle(g.bytes, size)}
	for i := range frames {
		g.append(frames[i])
	}
	t.ordinal++
	return nil
}

// holdLocked notes that g, if any, is superseded and held.
func (t *Track) holdLocked(g *group) {
	if g == nil {
		return
	}
	t.held = append(t.held, g)
	t.heldBytes += cap(g.bytes)
	for t.heldBytes > MaxHeldBytes {
		t.held[0].evicted = true
		t.forgetOldLocked(t.held[0])
	}
}

// forgetOldLocked takes g out of those that are held, if it is there.
func (t *Track) forgetOldLocked(g *group) {
	i := slices.Index(t.held, g)
	if i < 0 {
		return
	}
	t.held = slices.Delete(t.held, i, i+1)
	t.heldBytes -= cap(g.bytes)
}

// NewestBytes returns the encoded size of the newest group, 0 before the first.
func (t *Track) NewestBytes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest == nil {
		return 0
	}
	return len(t.newest.bytes)
}

// AppendFrame appends a frame to the newest group. Errors are ErrNoGroup,
// ErrTooLarge, ErrEnded and varint.ErrRange, all wrapped, as with WriteGroup.
func (t *Track) AppendFrame(f Frame) error {
	t.mu.Lock()
	err := t.appendFrameLocked(f)
	return t.unlockAndWake(err)
}

func (t *Track) appendFrameLocked(f Frame) error {
	if t.ended != running {
		return fmt.Errorf("append frame: %w", ErrEnded)
	}
	g := t.newest
	if g == nil {
		return fmt.Errorf("append frame: %w", ErrNoGroup)
	}
	if size := len(g.bytes) + wire.MaxFrameHeaderBytes + len(f.Payload); size > MaxGroupBytes {
		t.endLocked(aborted, protocol.CodeFrameTooLarge)
		return fmt.Errorf("append to group %d of %d bytes: %w", g.sequence, size, ErrTooLarge)
	}
	if _, err := varint.ZigZag(f.Timestamp - g.last); err != nil {
		return fmt.Errorf("append frame: %w", err)
	}
	g.append(f)
	t.grown = t.ordinal
	return nil
}

// append adds a frame whose timestamp was checked. Readers that hold a slice of
// bytes are not disturbed: only memory behind their end is written.
func (g *group) append(f Frame) {
	b, err := wire.AppendFrame(g.bytes, f.Timestamp-g.last, f.Payload)
	if err != nil {
		panic("moq: a checked timestamp does not fit")
	}
	g.bytes, g.last = b, f.Timestamp
	g.frames++
}

func checkTimestamps(last int64, frames []Frame) error {
	for i := range frames {
		if _, err := varint.ZigZag(frames[i].Timestamp - last); err != nil {
			return err
		}
		last = frames[i].Timestamp
	}
	return nil
}

// keptBytes is how much memory a track keeps for its next group without asking
// whether the next group needs it.
const keptBytes = 4 << 10

// recycle returns an empty slice with room for size bytes, from b if b has the
// room and is not far too large.
func recycle(b []byte, size int) []byte {
	if cap(b) < size || cap(b) > keptBytes && cap(b)/4 > size {
		return make([]byte, 0, size)
	}
	return b[:0]
}

// Finish ends the track after its newest group: subscribers get what they have
// not got, then the end. On an ended track it does nothing.
func (t *Track) Finish() {
	t.mu.Lock()
	t.endLocked(finished, 0)
	_ = t.unlockAndWake(nil)
}

// Abort ends the track at once: every subscription is reset with the code. It
// also aborts a finished track; on an aborted one it does nothing.
func (t *Track) Abort(code protocol.StreamCode) {
	t.mu.Lock()
	t.endLocked(aborted, code)
	_ = t.unlockAndWake(nil)
}

func (t *Track) endLocked(how end, code protocol.StreamCode) {
	if how > t.ended {
		t.ended, t.code = how, code
	}
}

// unlockAndWake releases the lock, wakes every cursor, and returns err. While a
// walk is on, changes of the cursor list go to a copy (see ownCursorsLocked).
func (t *Track) unlockAndWake(err error) error {
	if err != nil && !errors.Is(err, ErrTooLarge) {
		t.mu.Unlock()
		return err // nothing changed
	}
	cursors := t.cursors
	t.walks++
	t.mu.Unlock()
	for _, c := range cursors {
		c.wake()
	}
	t.mu.Lock()
	t.walks--
	t.mu.Unlock()
	return err
}
