package wire

import "fmt"

// Goaway asks the peer to move to URI, or to reconnect where it is if URI is
// empty. A client sends it empty.
type Goaway struct{ URI string }

// AppendGoaway appends the message with its length.
func AppendGoaway(dst []byte, m Goaway) []byte {
	start := len(dst)
	return lengthen(appendString(dst, m.URI), start)
}

// ParseGoaway parses a body. At most MaxURIBytes of URI are accepted.
func ParseGoaway(msg []byte) (Goaway, error) {
	b := body{rest: msg}
	m := Goaway{URI: b.text("uri")}
	if len(m.URI) > MaxURIBytes {
		b.fail("uri", fmt.Errorf("%w: %d bytes", ErrBounds, len(m.URI)))
	}
	return m, b.end("GOAWAY")
}
