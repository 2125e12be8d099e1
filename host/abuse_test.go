package host_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/qmux"
	"github.com/heddle-live/heddle/protocol/quic"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
	"github.com/heddle-live/heddle/sdk/frame"
)

const abuseProgram = `+edge(src: int, dst: int)
+big(k: int, i: int, text: string)
view near($head: int) := ?edge($head, Y)
view bigs($k: int) := ?big($k, I, T)
`

const (
	// abuseTime is how long each attack goes on.
	abuseTime = 700 * time.Millisecond
	// abuseKeys have abuseRows rows of a kilobyte each; the writer changes them.
	abuseKeys, abuseRows = 16, 100
	// abuseHeapBytes is how much an attack may have the server hold.
	abuseHeapBytes = 48 << 20
)

// TestAbuse attacks a real server while a writer and viewers on two transports
// go on, who must not notice, and expects the server to be as before afterwards.
func TestAbuse(t *testing.T) {
	if underRace {
		t.Skip("measures memory, which the race detector multiplies")
	}
	a := startAbuse(t)
	defer a.stop() // before the end of the test's context takes the server away
	for _, attack := range []struct {
		name string
		run  func(*abuse)
	}{
		{"half messages", halfMessages},
		{"fetches that nobody reads", unreadFetches},
		{"updates without end", updateStorm},
		{"unknown tracks", unknownTracks},
		{"subscribe and leave", churn},
		{"resets", resetStorm},
		{"viewers that never read", neverRead},
		{"listings of deep prefixes", deepListings},
		{"slow HTTP", slowHTTP},
		{"wrong records", wrongRecords},
		{"second SETUP", secondSetup},
		{"too many subscriptions", tooManySubscriptions},
	} {
		t.Run(attack.name, func(t *testing.T) { a.during(t, attack.run) })
	}
}

// abuse is a server under attack and its bystanders.
type abuse struct {
	*process
	t   *testing.T // of the present attack
	ctx context.Context
	end []func() // of the attack's sessions

	stop func() // the writer

	mu       sync.Mutex
	sentAt   map[int64]time.Time // by the row's second column
	latency  []time.Duration
	newest   map[string]int64 // what each viewer has seen
	sessions float64          // of the bystanders
	routines float64
}

func startAbuse(t *testing.T) *abuse {
	p := spawn(t, t.TempDir(), "--linger-key", "100ms", "--subscriptions-per-session", "200")
	p.await()
	a := &abuse{process: p, t: t, sentAt: map[int64]time.Time{}, newest: map[string]int64{}}
	var answer map[string]any
	p.must(&answer, call{"POST", "/v1/graphs", "application/json", "", `{"name":"g"}`})
	p.must(&answer, call{"PUT", "/v1/graphs/g/program", "text/plain", "", abuseProgram})
	text := strings.Repeat("x", 1000)
	for k := range abuseKeys {
		rows := make([]string, abuseRows)
		for i := range rows {
			rows[i] = fmt.Sprintf(`[%d,%d,"%s"]`, k, i, text)
		}
		p.must(&answer, call{
			"POST", "/v1/graphs/g/transactions", "application/json", "",
			`{"insert":{"big":[` + strings.Join(rows, ",") + `]}}`,
		})
	}
	for _, transport := range []string{"quic", "websocket"} {
		client, _ := p.dial(transport)
		sub, err := client.Subscribe(t.Context(), "g/near/7", "rows", lite.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go a.view(transport, sub)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { defer close(done); a.write(stop) }()
	a.stop = func() { close(stop); <-done }
	p.until("heddle_subscriptions", 2)
	a.sessions, a.routines = p.metric("heddle_sessions"), p.metric("go_goroutines")
	return a
}

// write changes the bystanders' key and a large one, a hundred times a second.
func (a *abuse) write(stop <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := int64(1); ; i++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		a.mu.Lock()
		a.sentAt[i] = time.Now()
		a.mu.Unlock()
		k := i % abuseKeys
		status, body, err := a.send(context.Background(), call{
			"POST", "/v1/graphs/g/transactions", "application/json", "", fmt.Sprintf(
				`{"insert":{"edge":[[7,%d]],"big":[[%d,1000,"%d"]]},`+
					`"delete":{"edge":[[7,%d]],"big":[[%d,1000,"%d"]]}}`,
				i, k, i, i-1, k, i-abuseKeys),
		})
		if err != nil || status != http.StatusOK {
			a.process.t.Errorf("write: %d %.200s, %v", status, body, err)
			return
		}
	}
}

// view reads the bystanders' key until its session ends.
func (a *abuse) view(name string, sub *lite.Subscription) {
	for {
		f, err := sub.Next(context.Background())
		if err != nil {
			return
		}
		parsed, err := frame.ParseFrame(f.Payload, nil)
		if err != nil {
			a.process.t.Errorf("%s viewer: %v", name, err)
			return
		}
		now := time.Now()
		a.mu.Lock()
		for _, row := range parsed.Insert {
			n, _ := row[1].(int64)
			a.newest[name] = max(a.newest[name], n)
			if at, ok := a.sentAt[n]; ok {
				a.latency = append(a.latency, now.Sub(at))
			}
		}
		a.mu.Unlock()
	}
}

// during runs an attack and checks what the bystanders and the server made of it.
func (a *abuse) during(t *testing.T, attack func(*abuse)) {
	a.t = t
	heap := a.metric("go_memstats_heap_inuse_bytes")
	a.mu.Lock()
	a.latency = a.latency[:0]
	a.mu.Unlock()
	var cancel func()
	a.ctx, cancel = context.WithTimeout(t.Context(), abuseTime)
	attack(a)
	<-a.ctx.Done()
	cancel()
	a.mu.Lock()
	seen, last := slices.Clone(a.latency), len(a.sentAt)
	a.mu.Unlock()
	slices.Sort(seen)
	held, routines := a.metric("go_memstats_heap_inuse_bytes"), a.metric("go_goroutines")
	for _, end := range a.end {
		end()
	}
	a.end = nil
	// How late the bystanders were is for people to read: the machine's other work
	// moves it more than an attack may. That they miss nothing is checked below.
	if len(seen) > 0 {
		t.Logf("%d deltas seen, median %v, p99 %v",
			len(seen), seen[len(seen)/2], seen[len(seen)*99/100])
	}
	t.Logf("%.0f goroutines, heap %.0f MB (%.0f before); %s", routines, held/1e6, heap/1e6, a.memory())
	if held-heap > abuseHeapBytes {
		t.Errorf("the server held %.0f MB", (held-heap)/1e6)
	}
	a.settle(int64(last))
}

// settle waits until nothing of the attack is left and every viewer has seen
// what was written last.
func (a *abuse) settle(last int64) {
	a.t.Helper()
	a.until("heddle_sessions", a.sessions)
	a.until("heddle_subscriptions", 2)
	a.until("heddle_watched_keys", 1)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(processPatience); ; <-look.C {
		a.mu.Lock()
		behind := a.newest["quic"] < last || a.newest["websocket"] < last
		a.mu.Unlock()
		routines := a.metric("go_goroutines")
		if !behind && routines < a.routines+20 {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("viewers behind: %v; %v goroutines, %v before", behind, routines, a.routines)
		}
	}
}

// hostile opens a session that speaks for itself: nothing answers or reads on it
// but the attack.
func (a *abuse) hostile(transport string) protocol.Session {
	a.t.Helper()
	// The attack's own time is too short for a handshake on a loaded machine.
	ctx, cancel := context.WithTimeout(a.t.Context(), processPatience)
	defer cancel()
	var s protocol.Session
	var err error
	switch transport {
	case "websocket":
		s, err = qmux.Dial(ctx, "ws://"+a.data+"/", qmux.Config{Protocols: lite.VersionNames()})
	default:
		pin := a.certificate(a.t.Context())
		cfg := quic.DialConfig{CertificateSHA256: &pin, Protocols: lite.VersionNames()}
		if transport == "quic" {
			s, err = quic.Dial(ctx, a.data, cfg)
		} else {
			s, err = quic.DialWebTransport(ctx, "https://"+a.data+"/", cfg)
		}
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.end = append(a.end, func() { _ = s.CloseWithError(0, "") })
	return s
}

// ask opens a request stream with a message on it; nil if the session or the
// time for the attack has ended.
func (a *abuse) ask(s protocol.Session, message []byte) protocol.Stream {
	stream, err := s.OpenStream(a.ctx)
	if err != nil {
		return nil
	}
	if _, err := stream.Write(message); err != nil {
		return nil
	}
	return stream
}

// many runs f in width goroutines until the attack's time is over or it returns
// false; they are awaited once the attack's sessions have ended.
func (a *abuse) many(width int, f func(i int) bool) {
	var all sync.WaitGroup
	for i := range width {
		all.Go(func() {
			for a.ctx.Err() == nil && f(i) {
				continue
			}
		})
	}
	a.end = append(a.end, all.Wait)
}

func bigKey(i int) protocol.Path { return protocol.Path(fmt.Sprintf("g/bigs/%d", i%abuseKeys)) }

func subscribeMessage(id uint64, broadcast protocol.Path) []byte {
	return wire.AppendSubscribe(varint.Append(nil, wire.StreamSubscribe), wire.Subscribe{
		ID: id, Broadcast: broadcast, Track: "rows",
	})
}

func trackMessage(broadcast protocol.Path) []byte {
	return wire.AppendTrack(varint.Append(nil, wire.StreamTrack), wire.Track{
		Broadcast: broadcast, Name: "rows",
	})
}

// halfMessages holds thousands of messages open whose last byte never comes.
func halfMessages(a *abuse) {
	message := varint.Append(varint.Append(nil, wire.StreamTrack), wire.MaxMessageBytes)
	message = append(message, make([]byte, wire.MaxMessageBytes-1)...)
	s := a.hostile("quic")
	a.many(64, func(int) bool { a.ask(s, message); return s.Context().Err() == nil })
}

// unreadFetches asks for large groups and reads none of them.
func unreadFetches(a *abuse) {
	s := a.hostile("quic")
	client, end := a.dial("quic")
	a.end = append(a.end, end)
	sub, err := client.Subscribe(a.ctx, bigKey(3), "rows", lite.SubscribeOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	newest, err := sub.Next(a.ctx)
	if err != nil {
		a.t.Fatal(err)
	}
	message := wire.AppendFetch(varint.Append(nil, wire.StreamFetch), wire.Fetch{
		Broadcast: bigKey(3), Track: "rows", Group: newest.Sequence,
	})
	a.many(16, func(int) bool { return a.ask(s, message) != nil })
}

// updateStorm has the server send large groups again as fast as it can.
func updateStorm(a *abuse) {
	var updates []byte
	for range 50 {
		updates = wire.AppendSubscribeUpdate(updates, wire.SubscribeUpdate{
			Delivery: wire.Delivery{Start: wire.Some(0)},
		})
	}
	s := a.hostile("quic")
	go drain(s)
	streams := make([]protocol.Stream, 16)
	for i := range streams {
		if streams[i] = a.ask(s, subscribeMessage(uint64(i), bigKey(i))); streams[i] == nil {
			a.t.Fatal("no stream")
		}
	}
	a.many(len(streams), func(i int) bool {
		_, err := streams[i].Write(updates)
		return err == nil
	})
}

// drain reads all groups of a session and keeps nothing.
func drain(s protocol.Session) {
	for {
		stream, err := s.AcceptUniStream(s.Context())
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, stream) }()
	}
}

func unknownTracks(a *abuse) {
	for _, transport := range []string{"websocket", "quic"} {
		s := a.hostile(transport)
		a.many(32, func(i int) bool {
			stream := a.ask(s, trackMessage(protocol.Path(fmt.Sprintf("g/none%d/7", i))))
			if stream == nil {
				return false
			}
			_ = stream.Close()
			_, _ = io.Copy(io.Discard, stream)
			return true
		})
	}
}

// churn watches keys that nobody else does and leaves again.
func churn(a *abuse) {
	client, end := a.dial("websocket")
	a.end = append(a.end, end)
	a.many(32, func(i int) bool {
		key := protocol.Path(fmt.Sprintf("g/near/%d", 1000+i+32*time.Now().Nanosecond()))
		sub, err := client.Subscribe(a.ctx, key, "rows", lite.SubscribeOptions{})
		if err != nil {
			return false
		}
		_, _ = sub.Next(a.ctx)
		sub.Close()
		return true
	})
}

// resetStorm subscribes and resets both halves at once.
func resetStorm(a *abuse) {
	for _, transport := range []string{"webtransport", "websocket"} {
		s := a.hostile(transport)
		go drain(s)
		a.many(16, func(i int) bool {
			stream := a.ask(s, subscribeMessage(uint64(time.Now().UnixNano()), bigKey(i)))
			if stream == nil {
				return false
			}
			stream.Reset(7)
			stream.Stop(7)
			return true
		})
	}
}

// neverRead watches large keys that change and reads nothing of them.
func neverRead(a *abuse) {
	for _, transport := range []string{"quic", "quic", "webtransport", "websocket"} {
		s := a.hostile(transport)
		for i := range abuseKeys {
			if a.ask(s, subscribeMessage(uint64(i), bigKey(i))) == nil {
				a.t.Error("subscription refused")
			}
		}
	}
	for range 4 { // and on a socket that nobody reads at all
		w := a.webSocket()
		w.send(a.t, opBinary, append(w.parameters(), w.streamFrame(0, 0, subscribeMessage(1, bigKey(1)))...))
	}
}

func deepListings(a *abuse) {
	s := a.hostile("quic")
	deep := protocol.Path("g/near/" + strings.Repeat("a/", protocol.MaxPathSegments-3) + "z")
	message := wire.AppendAnnounceRequest(varint.Append(nil, wire.StreamAnnounce),
		wire.AnnounceRequest{Prefix: deep})
	a.many(8, func(int) bool { return a.ask(s, message) != nil })
}

// slowHTTP holds connections with headers and with bodies that never end.
func slowHTTP(a *abuse) {
	head := "POST /v1/graphs/g/query HTTP/1.1\r\nHost: " + a.data + "\r\n"
	for i := range 200 {
		text := head + "X-"
		if i%2 == 0 {
			text = head + "Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n{"
		}
		a.raw(text)
	}
}

// raw opens a TCP connection and sends text.
func (a *abuse) raw(text string) net.Conn {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.data)
	if err != nil {
		a.t.Fatal(err)
	}
	a.end = append(a.end, func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		a.t.Fatal(err)
	}
	return conn
}

// secondSetup expects the session's end with its code, over every transport.
func secondSetup(a *abuse) {
	message := wire.AppendSetup(varint.Append(nil, wire.UniStreamSetup), wire.Setup{})
	for _, transport := range []string{"quic", "webtransport", "websocket"} {
		s := a.hostile(transport)
		for range 2 {
			stream, err := s.OpenUniStream(a.ctx)
			if err != nil {
				a.t.Fatal(err)
			}
			_, _ = stream.Write(message)
			_ = stream.Close()
		}
		select {
		case <-s.Context().Done():
		case <-time.After(processPatience):
		}
		var ended *protocol.SessionError
		if err := context.Cause(s.Context()); !errors.As(err, &ended) ||
			ended.Code != protocol.SessionProtocolViolation {
			a.t.Errorf("%s: %v", transport, err)
		}
	}
}

// tooManySubscriptions asks for one more than the configured limit.
func tooManySubscriptions(a *abuse) {
	s := a.hostile("quic")
	go drain(s)
	for i := range 200 {
		if a.ask(s, subscribeMessage(uint64(i), protocol.Path(fmt.Sprintf("g/near/%d", 100+i)))) == nil {
			a.t.Error("no stream")
		}
	}
	a.until("heddle_subscriptions", 202)
	stream, err := s.OpenStream(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := stream.Write(subscribeMessage(200, "g/near/99")); err != nil {
		a.t.Fatal(err)
	}
	_ = stream.SetReadDeadline(time.Now().Add(processPatience))
	_, err = io.ReadAll(stream)
	var refused *protocol.StreamError
	if !errors.As(err, &refused) || refused.Code != protocol.CodeBusy {
		a.t.Errorf("one over the limit: %v", err)
	}
}

// wrongRecords expects that each breach ends the WebSocket session.
func wrongRecords(a *abuse) {
	for name, records := range map[string]func(*webSocket){
		"garbage": func(w *webSocket) {
			w.send(a.t, opBinary, bytes.Repeat([]byte{0xa5, 0x5a, 0xff}, 300))
		},
		"text":             func(w *webSocket) { w.send(a.t, opText, []byte("hello")) },
		"oversized":        func(w *webSocket) { w.send(a.t, opBinary, make([]byte, 20_000)) },
		"no parameters":    func(w *webSocket) { w.send(a.t, opBinary, w.streamFrame(0, 0, nil)) },
		"parameters twice": func(w *webSocket) { w.send(a.t, opBinary, append(w.parameters(), w.parameters()...)) },
		"stream over the limit": func(w *webSocket) {
			w.send(a.t, opBinary, append(w.parameters(), w.streamFrame(4*4096, 0, []byte{2})...))
		},
		"over the credit": func(w *webSocket) {
			w.send(a.t, opBinary, w.parameters())
			for i := range uint64(400) {
				w.send(a.t, opBinary, w.streamFrame(0, i*16_000, make([]byte, 16_000)))
			}
		},
	} {
		w := a.webSocket()
		records(w)
		w.send(a.t, opClose, nil) // which the server would wait for
		_ = w.conn.SetReadDeadline(time.Now().Add(processPatience))
		_, err := io.Copy(io.Discard, w.in)
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			a.t.Errorf("%s: the session goes on", name)
		}
	}
}

// webSocket is a WebSocket written by hand.
type webSocket struct {
	conn net.Conn
	in   *bufio.Reader
}

const (
	opText   = 1
	opBinary = 2
	opClose  = 8
)

func (a *abuse) webSocket() *webSocket {
	a.t.Helper()
	conn := a.raw("GET / HTTP/1.1\r\nHost: " + a.data + "\r\nUpgrade: websocket\r\n" +
		"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" +
		"Sec-WebSocket-Protocol: qmux-02.moq-lite-05\r\n\r\n")
	w := &webSocket{conn, bufio.NewReader(conn)}
	res, err := http.ReadResponse(w.in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		a.t.Fatalf("upgrade: %v, %v", res, err)
	}
	return w
}

// send writes one message, masked with zeros. The server may have hung up.
func (w *webSocket) send(t *testing.T, op byte, p []byte) {
	t.Helper()
	head := []byte{0x80 | op, 0x80 | byte(len(p))}
	if len(p) >= 126 {
		head = []byte{0x80 | op, 0x80 | 126, byte(len(p) >> 8), byte(len(p))}
	}
	head = append(head, 0, 0, 0, 0)
	_, _ = w.conn.Write(append(head, p...))
}

// parameters grants the server as good as everything.
func (w *webSocket) parameters() []byte {
	var body []byte
	for _, id := range []uint64{0x04, 0x05, 0x06, 0x07, 0x08, 0x09} {
		body = append(varint.Append(body, id), 8)
		body = varint.Append(body, 1<<40)
	}
	b := varint.Append(nil, 0x3f5153300d0a0d0a)
	return append(varint.Append(b, uint64(len(body))), body...)
}

func (w *webSocket) streamFrame(id, offset uint64, data []byte) []byte {
	b := varint.Append([]byte{0x0e}, id)
	b = varint.Append(b, offset)
	return append(varint.Append(b, uint64(len(data))), data...)
}
