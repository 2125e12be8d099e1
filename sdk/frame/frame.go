// Package frame is the wire format of views, format 1: the spelling of keys in
// paths and track names, the JSON frames that carry snapshots and changes, and
// State, which turns frames back into exact rows. It imports the standard
// library only, does no I/O, starts no goroutine and knows nothing of
// transports: host/views appends frames with it, sdk/client and other readers
// parse and apply them. docs/formats/views.md says the same byte by byte, and
// the vectors in testdata are read by sdk/js as well.
package frame

import (
	"strconv"
	"time"
)

// Type is the static type of a key parameter or of a column.
type Type uint8

// The types of format 1. Untyped is what a reader uses that has no Meta.
const (
	Untyped       Type = iota
	Int                // Go int64; outside ±(2^53-1) a decimal string in JSON
	Float              // Go float64, finite, never -0
	String             // Go string, UTF-8
	Bool               // Go bool
	BytesType          // Bytes; base64 in JSON
	TimestampType      // Timestamp; like an int in JSON
)

// Bytes is a cell or key of type bytes: a string of any bytes, so that it can be
// compared and is never changed.
type Bytes string

// MarshalText spells the bytes as a cell does, in base64. They would be no JSON as
// they are.
func (b Bytes) MarshalText() ([]byte, error) {
	return appendBase64(nil, string(b), cellAlphabet, true), nil
}

// Timestamp is a cell or key of type timestamp: milliseconds since 1970 in UTC.
type Timestamp int64

// Time returns the timestamp as a time in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

var typeNames = [...]string{
	Untyped: "untyped", Int: "int", Float: "float", String: "string", Bool: "bool",
	BytesType: "bytes", TimestampType: "timestamp",
}

// String returns the spelling that track meta uses: "int", "float", "string", "bool",
// "bytes", "timestamp".
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type(" + strconv.Itoa(int(t)) + ")"
}

// TypeOf returns the type that track meta spells name, and false if this
// package does not know it. "untyped" is not a spelling.
func TypeOf(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name && Type(t) != Untyped {
			return Type(t), true
		}
	}
	return Untyped, false
}

// Limits and thresholds of format 1. A writer keeps them; readers do not
// enforce them.
const (
	// SnapshotPartBytes is the largest frame of a snapshot that comes in parts.
	SnapshotPartBytes = 256 << 10
	// SmallSnapshotBytes is the size up to which each change begins a new group.
	SmallSnapshotBytes = 1 << 10
	// GroupFramesMax and GroupBytesMax end a group of one key.
	GroupFramesMax = 256
	GroupBytesMax  = 1 << 20
	// SetGroupFramesMax ends a group of a set of keys.
	SetGroupFramesMax = 900
	// InlineNameBytes is the longest track name that lists its keys.
	InlineNameBytes = 4 << 10
	// GroupsOpenMax is how many groups a session to a browser keeps open.
	GroupsOpenMax = 64
)

// maxExact is the largest magnitude of an integer that JSON readers keep exactly.
const maxExact = 1<<53 - 1

// Names of tracks below a view's or a key's broadcast.
const (
	TrackRows     = "rows"     // of <graph>/<view>/<key>; "rows/<key>" of <graph>/<view>
	TrackMeta     = "meta"     // one Meta frame
	TrackProgress = "progress" // Progress frames, about one a second
	TrackSet      = "set"      // "set/<id>" of <graph>/<view>
)
