package wire

import (
	"fmt"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// Track asks for the properties of a track; the only message that a subscriber
// sends on a Track stream.
type Track struct {
	Broadcast protocol.Path
	Name      string
}

// AppendTrack appends the message with its length.
func AppendTrack(dst []byte, m Track) []byte {
	start := len(dst)
	dst = appendString(dst, m.Broadcast)
	dst = appendString(dst, m.Name)
	return lengthen(dst, start)
}

// ParseTrack parses a body.
func ParseTrack(msg []byte) (Track, error) {
	b := body{rest: msg}
	m := Track{Broadcast: b.path("broadcast"), Name: b.name("track")}
	return m, b.end("TRACK")
}

// TrackInfo answers a Track; a FIN follows it. The fields are constant for the
// track's life. The Ordered byte of the wire is dead: written 0, not kept.
type TrackInfo struct {
	Priority      uint8
	MaxLatencyMS  uint64
	TimescaleUnit uint64 // units per second, at least 1
}

// AppendTrackInfo appends the message with its length.
func AppendTrackInfo(dst []byte, m TrackInfo) []byte {
	start := len(dst)
	dst = append(dst, m.Priority, 0)
	dst = varint.Append(dst, m.MaxLatencyMS)
	dst = varint.Append(dst, m.TimescaleUnit)
	return lengthen(dst, start)
}

// ParseTrackInfo parses a body. A timescale of 0 is ErrViolation.
func ParseTrackInfo(msg []byte) (TrackInfo, error) {
	b := body{rest: msg}
	var m TrackInfo
	m.Priority = b.octet("priority")
	b.boolean("ordered")
	m.MaxLatencyMS = b.integer("max latency")
	m.TimescaleUnit = b.integer("timescale")
	if b.err == nil && m.TimescaleUnit == 0 {
		b.fail("timescale", fmt.Errorf("%w: 0", ErrViolation))
	}
	return m, b.end("TRACK_INFO")
}
