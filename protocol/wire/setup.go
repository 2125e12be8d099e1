package wire

import (
	"fmt"
	"unicode/utf8"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// ProbeLevel says what a publisher can do on Probe streams.
type ProbeLevel uint64

// Probe levels.
const (
	ProbeNone     ProbeLevel = 0
	ProbeReport   ProbeLevel = 1
	ProbeIncrease ProbeLevel = 2
)

// Role says what a client means to do; it is a hint.
type Role uint64

// Roles.
const (
	RoleBoth       Role = 0
	RolePublisher  Role = 1
	RoleSubscriber Role = 2
)

// Parameter IDs of SETUP.
const (
	setupProbe = 0x1
	setupPath  = 0x2
	setupRole  = 0x3
	setupCost  = 0x4
	setupHop   = 0x5
)

// Setup is the one message of a Setup stream, sent by both sides as the first
// thing of a session. Zero fields are left out. Path is for clients of bindings
// without a request URI only; whether it may be there is the session's check.
type Setup struct {
	Probe ProbeLevel
	Path  string
	Role  Role
	Cost  Optional // absent means 1
	Hop   protocol.HopID
}

// AppendSetup appends the message with its length.
func AppendSetup(dst []byte, m Setup) []byte {
	start := len(dst)
	var count byte
	dst = append(dst, 0)
	put := func(id, v uint64) {
		count++
		dst = varint.Append(dst, id)
		dst = varint.Append(dst, uint64(varint.Len(v)))
		dst = varint.Append(dst, v)
	}
	if m.Probe != ProbeNone {
		put(setupProbe, uint64(m.Probe))
	}
	if m.Path != "" {
		count++
		dst = varint.Append(dst, setupPath)
		dst = appendString(dst, m.Path)
	}
	if m.Role != RoleBoth {
		put(setupRole, uint64(m.Role))
	}
	if m.Cost.Set {
		put(setupCost, m.Cost.Value)
	}
	if m.Hop != 0 {
		put(setupHop, uint64(m.Hop))
	}
	dst[start] = count
	return lengthen(dst, start)
}

// ParseSetup parses a body. Unknown parameters are skipped, unknown probe
// levels count as ProbeIncrease, unknown roles as RoleBoth. A parameter that
// appears twice is ErrViolation.
func ParseSetup(msg []byte) (Setup, error) {
	b := body{rest: msg}
	var m Setup
	count := b.integer("parameter count")
	if count > MaxParameters {
		b.fail("parameter count", fmt.Errorf("%w: %d parameters", ErrBounds, count))
	}
	seen := make([]uint64, 0, 8)
	for range count {
		id := b.integer("parameter id")
		value := body{rest: b.bytes("parameter value")}
		if b.err != nil {
			break
		}
		for _, other := range seen {
			if other == id {
				b.fail("parameter id", fmt.Errorf("%w: %#x twice", ErrViolation, id))
			}
		}
		seen = append(seen, id)
		if err := m.parameter(id, &value); err != nil {
			b.fail("parameter", err)
		}
	}
	if err := b.end("SETUP"); err != nil {
		return Setup{}, err
	}
	return m, nil
}

func (m *Setup) parameter(id uint64, value *body) error {
	switch id {
	case setupProbe:
		m.Probe = min(ProbeLevel(value.integer("level")), ProbeIncrease)
	case setupPath:
		// The value is the text itself, without a length of its own.
		if !utf8.Valid(value.rest) {
			return fmt.Errorf("path: %w: not UTF-8", ErrMalformed)
		}
		m.Path, value.rest = string(value.rest), nil
	case setupRole:
		m.Role = Role(value.integer("role"))
		if m.Role > RoleSubscriber {
			m.Role = RoleBoth
		}
	case setupCost:
		m.Cost = Some(value.integer("cost"))
	case setupHop:
		m.Hop = protocol.HopID(value.integer("hop"))
	default:
		return nil
	}
	return value.end(fmt.Sprintf("%#x", id))
}
