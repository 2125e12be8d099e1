package qmux

import (
	"errors"
	"fmt"
	"time"

	"github.com/heddle-live/heddle/protocol/varint"
)

// IDs of transport parameters. Unknown ones are skipped.
const (
	parameterIdle       = 0x01
	parameterData       = 0x04
	parameterBidiLocal  = 0x05
	parameterBidiRemote = 0x06
	parameterUni        = 0x07
	parameterBidiCount  = 0x08
	parameterUniCount   = 0x09
	parameterResetAt    = 0x1d // empty; not spoken here
	parameterDatagram   = 0x20 // not spoken here
	parameterRecord     = 0x0571c59429cd0845
	parameterProtocols  = 0x3d4f9c2a8b1e6075
	// idleMillisMax keeps a peer's idle timeout inside a time.Duration.
	idleMillisMax = 1 << 40
)

// errParameters is wrapped by every error of parseParameters.
var errParameters = errors.New("malformed transport parameters")

// parameters are what one side grants to the other.
type parameters struct {
	idle       time.Duration // 0: none
	data       uint64        // bytes on all streams
	bidiLocal  uint64        // bytes on a bidirectional stream that the sender opens
	bidiRemote uint64        // bytes on a bidirectional stream that the receiver opens
	uni        uint64        // bytes on a unidirectional stream
	bidiCount  uint64
	uniCount   uint64
}

// appendParameters appends the whole frame. Zero parameters are left out.
func appendParameters(dst []byte, p parameters) []byte {
	var body []byte
	for _, pair := range [...][2]uint64{
		{parameterIdle, uint64(p.idle / time.Millisecond)},
		{parameterData, p.data},
		{parameterBidiLocal, p.bidiLocal},
		{parameterBidiRemote, p.bidiRemote},
		{parameterUni, p.uni},
		{parameterBidiCount, p.bidiCount},
		{parameterUniCount, p.uniCount},
		{parameterRecord, recordBytesMax},
	} {
		if pair[1] == 0 {
			continue
		}
		body = varint.Append(body, pair[0])
		body = varint.Append(body, uint64(varint.Len(pair[1])))
		body = varint.Append(body, pair[1])
	}
	dst = appendFrame(dst, frameParameters, uint64(len(body)))
	return append(dst, body...)
}

// parseParameters reads the body of a parameters frame. Errors wrap
// errParameters: truncation, trailing bytes, an ID twice, an ID that QMux
// forbids, and a record size below the draft's minimum.
func parseParameters(body []byte) (parameters, error) {
	var out parameters
	seen := make(map[uint64]bool)
	p := parser{b: body}
	for len(p.b) > 0 {
		id := p.int()
		value := p.bytes(p.int())
		if p.err != nil {
			return parameters{}, fmt.Errorf("%w: %w", errParameters, p.err)
		}
		if seen[id] {
			return parameters{}, fmt.Errorf("%w: %#x twice", errParameters, id)
		}
		seen[id] = true // at most as many as fit one record
		if err := out.set(id, value); err != nil {
			return parameters{}, err
		}
	}
	return out, nil
}

func (p *parameters) set(id uint64, value []byte) error {
	var to *uint64
	var number uint64
	switch id {
	case parameterIdle, parameterRecord, parameterDatagram:
		to = &number
	case parameterData:
		to = &p.data
	case parameterBidiLocal:
		to = &p.bidiLocal
	case parameterBidiRemote:
		to = &p.bidiRemote
	case parameterUni:
		to = &p.uni
	case parameterBidiCount:
		to = &p.bidiCount
	case parameterUniCount:
		to = &p.uniCount
	case parameterResetAt:
		if len(value) > 0 {
			return fmt.Errorf("%w: %#x is not empty", errParameters, id)
		}
		return nil
	case 0x00, 0x02, 0x03, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, parameterProtocols:
		return fmt.Errorf("%w: %#x is forbidden over WebSocket", errParameters, id)
	default:
		return nil
	}
	v, n, err := varint.Parse(value)
	if err != nil || n != len(value) {
		return fmt.Errorf("%w: %#x is not one integer", errParameters, id)
	}
	*to = v
	switch id {
	case parameterIdle:
		p.idle = time.Duration(min(v, idleMillisMax)) * time.Millisecond
	case parameterRecord:
		if v < recordBytesMax {
			return fmt.Errorf("%w: record size %d below %d", errParameters, v, recordBytesMax)
		}
	}
	return nil
}
