package journal

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// Group sequences are opening × PublicationsPerOpening + publication number and
// stay below 2^53, the largest number that a JavaScript client holds exactly.
const (
	PublicationsPerOpening = 1 << 36
	OpeningMax             = 1<<17 - 1
	// OpeningsPerRestore is what a restore from a backup adds to the opening
	// number, past every opening that the lost log may have seen.
	OpeningsPerRestore = 256

	openingsBegin = 1_577_836_800 // 2020-01-01 UTC, seconds since 1970
)

// Sequence returns the group sequence of a publication number in an opening.
// It returns false if the publication number is full, in which case the next
// opening must begin, or if the opening is over OpeningMax.
func Sequence(opening, publication uint64) (uint64, bool) {
	if publication >= PublicationsPerOpening || opening > OpeningMax {
		return 0, false
	}
	return opening*PublicationsPerOpening + publication, true
}

// NextOpening returns the opening number after previous: the larger of
// previous + 1 and the days since 2020-01-01 UTC. The days let a graph whose log
// was lost come back above what clients have seen. A clock that shows a day over
// OpeningMax (the year 2378) is wrong and is not asked. It returns ErrExhausted
// when previous + 1 is over OpeningMax.
func NextOpening(previous uint64, now time.Time) (uint64, error) {
	if previous >= OpeningMax {
		return 0, fmt.Errorf("%w: %d of %d", ErrExhausted, previous, OpeningMax)
	}
	next := previous + 1
	// Seconds, for a time.Duration ends after 292 years.
	days := (now.Unix() - openingsBegin) / (24 * 60 * 60)
	if days > 0 && days <= OpeningMax {
		next = max(next, uint64(days))
	}
	return next, nil
}

// Epoch names one opening of a graph's log: a UUID of version 7.
type Epoch [16]byte

// NewEpoch makes an epoch from a time, which it holds in milliseconds, and 10
// random bytes.
//
// Source: RFC 9562, section 5.7.
func NewEpoch(now time.Time, random [10]byte) Epoch {
	var e Epoch
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(now.UnixMilli()))
	copy(e[:6], millis[2:])
	copy(e[6:], random[:])
	e[6] = e[6]&0x0f | 0x70
	e[8] = e[8]&0x3f | 0x80
	return e
}

// String returns the usual 36 characters, lower case.
func (e Epoch) String() string {
	b := make([]byte, 0, 36)
	for i, octet := range e {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, []byte{octet})
	}
	return string(b)
}

// CheckName returns ErrName, wrapped, unless name can name a graph: 1 to
// GraphNameBytesMax ASCII letters, digits, `_`, `-` and `.`, the first one not
// a dot.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > GraphNameBytesMax {
		return fmt.Errorf("%w: %d bytes, 1 to %d are allowed",
			ErrName, len(name), GraphNameBytesMax)
	}
	if name[0] == '.' {
		return fmt.Errorf("%w: %q begins with a dot", ErrName, name)
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '-', c == '.':
		default:
			return fmt.Errorf("%w: %q holds %q; letters, digits, '_', '-' and '.' are allowed",
				ErrName, name, c)
		}
	}
	return nil
}
