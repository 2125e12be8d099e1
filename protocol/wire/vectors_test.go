package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the decoded lines of the vectors")

// codec reads one message as it stands on a stream and writes it again.
type codec struct {
	name   string // of the vectors' file and the fuzz target's seeds
	prefix []byte // the stream's type, where the message is a stream's first
	// message decodes a body; response types are checked by typed.
	message func(body []byte) (fields string, again []byte, err error)
}

func codecOf[M any](
	name string, prefix []byte, parse func([]byte) (M, error), app func([]byte, M) []byte,
) codec {
	return codec{name, prefix, func(body []byte) (string, []byte, error) {
		m, err := parse(body)
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("%+v", m), app(nil, m), nil
	}}
}

// untyped takes the response type off again, which the vectors hold as prefix.
func untyped[M any](app func([]byte, M) []byte) func([]byte, M) []byte {
	return func(dst []byte, m M) []byte { return append(dst, app(nil, m)[1:]...) }
}

var codecs = []codec{
	codecOf("setup", []byte{1}, ParseSetup, AppendSetup),
	codecOf("announce_request", []byte{1}, ParseAnnounceRequest, AppendAnnounceRequest),
	codecOf("announce_ok", nil, ParseAnnounceOK, AppendAnnounceOK),
	codecOf("announce", nil, ParseAnnounce, AppendAnnounce),
	codecOf("subscribe", []byte{2}, ParseSubscribe, AppendSubscribe),
	codecOf("subscribe_update", nil, ParseSubscribeUpdate, AppendSubscribeUpdate),
	codecOf("subscribe_start", []byte{0}, ParseSubscribeStart, untyped(AppendSubscribeStart)),
	codecOf("subscribe_end", []byte{1}, ParseSubscribeEnd, untyped(AppendSubscribeEnd)),
	codecOf("subscribe_drop", []byte{2}, ParseSubscribeDrop, untyped(AppendSubscribeDrop)),
	codecOf("fetch", []byte{3}, ParseFetch, AppendFetch),
	codecOf("probe", []byte{4}, ParseProbe, AppendProbe),
	codecOf("goaway", []byte{5}, ParseGoaway, AppendGoaway),
	codecOf("track", []byte{6}, ParseTrack, AppendTrack),
	codecOf("track_info", nil, ParseTrackInfo, AppendTrackInfo),
	codecOf("group", []byte{0}, ParseGroup, AppendGroup),
	{"frame", nil, nil},
}

// decode reads b, which must be one message and no more.
func (c codec) decode(b []byte) (fields string, again []byte, err error) {
	if c.message == nil {
		delta, payload, n, err := ParseFrame(b)
		if err != nil {
			return "", nil, err
		}
		if n != len(b) {
			return "", nil, fmt.Errorf("%w: bytes after the frame", ErrViolation)
		}
		again, err = AppendFrame(nil, delta, payload)
		return fmt.Sprintf("{Delta:%d Payload:%q}", delta, payload), again, err
	}
	rest, ok := bytes.CutPrefix(b, c.prefix)
	if !ok {
		return "", nil, fmt.Errorf("%w: type", ErrMalformed)
	}
	r := bytes.NewReader(rest)
	body, err := ReadMessage(r, nil)
	if err != nil {
		return "", nil, err
	}
	if r.Len() > 0 {
		return "", nil, fmt.Errorf("%w: bytes after the message", ErrViolation)
	}
	fields, again, err = c.message(body)
	return fields, append(slices.Clone(c.prefix), again...), err
}

func (c codec) file() string {
	return filepath.Join("testdata", "moq-lite-05", c.name+".txt")
}

// vector is one case of a file: lines of "# comment", then hex, then "= fields"
// or "! error". A comment that begins with "other form" says that the message
// is accepted but written differently.
type vector struct {
	comment []string
	hex     string
	result  string
}

func readVectors(t testing.TB, file string) []vector {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	var v vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if v.hex != "" && (line == "" || line[0] == '#') { // it has no result yet
			all = append(all, v)
			v = vector{}
		}
		switch {
		case line == "":
		case line[0] == '#':
			v.comment = append(v.comment, line)
		case line[0] == '=' || line[0] == '!':
			v.result = line
			all = append(all, v)
			v = vector{}
		default:
			v.hex = line
		}
	}
	if v.hex != "" {
		all = append(all, v)
	}
	return all
}

func (v vector) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(v.hex, " ", ""))
	if err != nil {
		t.Fatalf("%q: %v", v.hex, err)
	}
	return b
}

func (c codec) result(b []byte) (line string, again []byte) {
	fields, again, err := c.decode(b)
	if err != nil {
		return "! " + err.Error(), nil
	}
	return "= " + fields, again
}

func TestVectors(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			vectors := readVectors(t, c.file())
			for i := range vectors {
				v := &vectors[i]
				b := v.bytes(t)
				got, again := c.result(b)
				if *update {
					v.result = got
				}
				if got != v.result {
					t.Errorf("%s\n got %s\nwant %s", v.hex, got, v.result)
				}
				other := len(v.comment) > 0 && strings.HasPrefix(v.comment[0], "# other form")
				if again != nil && bytes.Equal(again, b) == other {
					t.Errorf("%s\nwritten as % x", v.hex, again)
				}
			}
			if *update {
				writeVectors(t, c.file(), vectors)
			}
		})
	}
}

func writeVectors(t *testing.T, file string, vectors []vector) {
	t.Helper()
	var out bytes.Buffer
	for i, v := range vectors {
		if i > 0 {
			out.WriteByte('\n')
		}
		for _, line := range v.comment {
			fmt.Fprintln(&out, line)
		}
		fmt.Fprintf(&out, "%s\n%s\n", v.hex, v.result)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every beginning of a good message asks for more bytes, and says nothing else.
func TestTruncated(t *testing.T) {
	for _, c := range codecs {
		for _, v := range readVectors(t, c.file()) {
			b := v.bytes(t)
			if v.result[0] != '=' {
				continue
			}
			for cut := len(c.prefix); cut < len(b); cut++ {
				_, _, err := c.decode(b[:cut])
				if !isEnd(err) {
					t.Errorf("%s: % x: %v", c.name, b[:cut], err)
				}
			}
			if _, _, err := c.decode(append(slices.Clone(b), 0)); !errors.Is(err, ErrViolation) {
				t.Errorf("%s: trailing byte: %v", c.name, err)
			}
		}
	}
}

// A body that is longer than its fields is refused, whatever the message.
func TestTrailingByteInBody(t *testing.T) {
	for _, c := range codecs {
		if c.message == nil {
			continue
		}
		for _, v := range readVectors(t, c.file()) {
			b := v.bytes(t)
			if v.result[0] != '=' {
				continue
			}
			body, err := ReadMessage(bytes.NewReader(b[len(c.prefix):]), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.message(append(body, 0)); !errors.Is(err, ErrViolation) {
				t.Errorf("%s: %v", c.name, err)
			}
			for cut := range body[:len(body)-1] {
				if _, _, err := c.message(body[:cut]); err == nil {
					t.Errorf("%s: body cut to %d bytes accepted", c.name, cut)
				}
			}
		}
	}
}

func fuzzCodec(f *testing.F, name string) {
	i := slices.IndexFunc(codecs, func(c codec) bool { return c.name == name })
	c := codecs[i]
	for _, v := range readVectors(f, c.file()) {
		f.Add(v.bytes(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fields, again, err := c.decode(b)
		if err != nil {
			return
		}
		fields2, again2, err := c.decode(again)
		if err != nil || fields2 != fields || !bytes.Equal(again, again2) {
			t.Errorf("% x: %s\nagain % x: %s, %v", b, fields, again, fields2, err)
		}
		if name == "frame" && len(again) > len(b) || len(again) > MaxMessageBytes+8+len(b) {
			t.Errorf("% x grew to % x", b, again)
		}
	})
}

func FuzzSetup(f *testing.F)           { fuzzCodec(f, "setup") }
func FuzzAnnounceRequest(f *testing.F) { fuzzCodec(f, "announce_request") }
func FuzzAnnounceOK(f *testing.F)      { fuzzCodec(f, "announce_ok") }
func FuzzAnnounce(f *testing.F)        { fuzzCodec(f, "announce") }
func FuzzSubscribe(f *testing.F)       { fuzzCodec(f, "subscribe") }
func FuzzSubscribeUpdate(f *testing.F) { fuzzCodec(f, "subscribe_update") }
func FuzzSubscribeStart(f *testing.F)  { fuzzCodec(f, "subscribe_start") }
func FuzzSubscribeEnd(f *testing.F)    { fuzzCodec(f, "subscribe_end") }
func FuzzSubscribeDrop(f *testing.F)   { fuzzCodec(f, "subscribe_drop") }
func FuzzFetch(f *testing.F)           { fuzzCodec(f, "fetch") }
func FuzzProbe(f *testing.F)           { fuzzCodec(f, "probe") }
func FuzzGoaway(f *testing.F)          { fuzzCodec(f, "goaway") }
func FuzzTrack(f *testing.F)           { fuzzCodec(f, "track") }
func FuzzTrackInfo(f *testing.F)       { fuzzCodec(f, "track_info") }
func FuzzGroup(f *testing.F)           { fuzzCodec(f, "group") }
func FuzzFrame(f *testing.F)           { fuzzCodec(f, "frame") }
