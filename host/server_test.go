package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host"
	"github.com/heddle-live/heddle/host/config"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/qmux"
	"github.com/heddle-live/heddle/protocol/quic"
	"github.com/heddle-live/heddle/sdk/frame"
)

const testKey = "test-key-of-sixteen-bytes-and-more"

const testProgram = `+edge(src: int, dst: int)
+label(node: int, text: string)
r1(X, Y) <- edge(X, Y), label(X, "hot")
view hot($head: int) := ?r1($head, Y)
view texts($node: int) := ?label($node, T)
`

// server is a whole Heddle on loopback with its journal in a directory.
type server struct {
	t       *testing.T
	dir     string
	running *host.Server
	cancel  context.CancelFunc
	ended   chan error
}

func startServer(t *testing.T, adjust ...func(*config.Config)) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.start(adjust...)
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(adjust ...func(*config.Config)) {
	s.t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.AdminKey = s.dir, testKey
	cfg.DataListen, cfg.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	for _, a := range adjust {
		a(&cfg)
	}
	var err error
	s.running, err = host.Start(s.t.Context(), cfg, host.Options{
		Logger: slog.New(slog.DiscardHandler), Version: "test",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.running.Run(ctx) }()
}

func (s *server) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.cancel = nil
	if err := <-s.ended; err != nil {
		s.t.Errorf("server: %v", err)
	}
}

// call sends a request to the admin listener and returns status and body.
func (s *server) call(method, path, contentType, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method,
		"http://"+s.running.AdminAddr()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", contentType)
	return s.do(req)
}

func (s *server) do(req *http.Request) (int, string) {
	s.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (s *server) apply(program string) {
	s.t.Helper()
	if status, body := s.call("POST", "/v1/graphs", "application/json", `{"name":"g"}`); status != 201 {
		s.t.Fatalf("create: %d %s", status, body)
	}
	if status, body := s.call("PUT", "/v1/graphs/g/program", "text/plain", program); status != 200 {
		s.t.Fatalf("apply: %d %s", status, body)
	}
}

func (s *server) write(body string) uint64 {
	s.t.Helper()
	status, answer := s.call("POST", "/v1/graphs/g/transactions", "application/json", body)
	var receipt struct{ Revision uint64 }
	if err := json.Unmarshal([]byte(answer), &receipt); status != 200 || err != nil {
		s.t.Fatalf("write %s: %d %s", body, status, answer)
	}
	return receipt.Revision
}

// dial opens a client session over the named transport.
func (s *server) dial(transport string) *lite.Session {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	addr := s.running.DataAddr()
	pin := s.running.CertificateSHA256()
	cfg := quic.DialConfig{CertificateSHA256: &pin, Protocols: lite.VersionNames()}
	var session protocol.Session
	var err error
	switch transport {
	case "quic":
		session, err = quic.Dial(ctx, addr, cfg)
	case "webtransport":
		session, err = quic.DialWebTransport(ctx, "https://"+addr+"/", cfg)
	case "websocket":
		session, err = qmux.Dial(ctx, "ws://"+addr+"/", qmux.Config{Protocols: lite.VersionNames()})
	}
	if err != nil {
		s.t.Fatalf("dial %s: %v", transport, err)
	}
	client := lite.NewSession(session, lite.Config{Client: true})
	done := make(chan struct{})
	runCtx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		_ = client.Run(runCtx)
	}()
	s.t.Cleanup(func() { stop(); <-done })
	return client
}

// watcher reads one key's rows as a client does.
type watcher struct {
	t     *testing.T
	sub   *lite.Subscription
	state frame.State
}

func (s *server) watch(client *lite.Session, broadcast protocol.Path, track string) *watcher {
	s.t.Helper()
	sub, err := client.Subscribe(s.t.Context(), broadcast, track, lite.SubscribeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(sub.Close)
	return &watcher{t: s.t, sub: sub}
}

// next applies one frame.
func (w *watcher) next() (frame.Change, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	f, err := w.sub.Next(ctx)
	if err != nil {
		return frame.Change{}, err
	}
	parsed, err := frame.ParseFrame(f.Payload, nil)
	if err != nil {
		return frame.Change{}, err
	}
	return w.state.Apply(f.Sequence, uint64(f.Index), parsed), nil
}

// until reads frames until the rows are as wanted.
func (w *watcher) until(want string) {
	w.t.Helper()
	for !w.state.Held() || fmt.Sprint(w.state.Rows()) != want {
		if _, err := w.next(); err != nil {
			w.t.Fatalf("rows %v, want %s: %v", w.state.Rows(), want, err)
		}
	}
}

func TestEndToEnd(t *testing.T) {
	for _, transport := range []string{"quic", "webtransport", "websocket"} {
		t.Run(transport, func(t *testing.T) {
			s := startServer(t)
			s.apply(testProgram)
			s.write(`{"insert":{"label":[[400,"hot"]],"edge":[[400,1]]}}`)
			client := s.dial(transport)
			listing, err := client.Announced(t.Context(), "g/hot/400")
			if err != nil {
				t.Fatal(err)
			}
			if list, err := listing.Next(); err != nil || len(list) != 1 || list[0].Suffix != "" {
				t.Errorf("announced below a view: %v, %v", list, err)
			}
			byPath := s.watch(client, "g/hot/400", "rows")
			byTrack := s.watch(client, "g/hot", "rows/400")
			byPath.until("[[400 1]]")
			byTrack.until("[[400 1]]")
			for i := 2; i < 40; i++ {
				s.write(fmt.Sprintf(`{"insert":{"edge":[[400,%d]]},"delete":{"edge":[[400,%d]]}}`, i, i-1))
			}
			byPath.until("[[400 39]]")
			byTrack.until("[[400 39]]")
			status, body := s.call("POST", "/v1/graphs/g/query", "application/json",
				`{"query":"?r1($k, Y)","parameters":{"k":400}}`)
			if status != 200 || !strings.Contains(body, `"rows":[[400,39]]`) {
				t.Errorf("query: %d %s", status, body)
			}
			if _, err := client.Info(t.Context(), "g/hot/0400", "rows"); !notFound(err) {
				t.Errorf("a misspelt key: %v", err)
			}
			if w := s.watch(client, "g/hot/x", "rows"); true {
				if _, err := w.next(); !notFound(err) {
					t.Errorf("subscribe to a key of the wrong type: %v", err)
				}
			}
		})
	}
}

func notFound(err error) bool {
	var refused *protocol.StreamError
	return errors.As(err, &refused) && refused.Code == protocol.CodeNotFound
}

func TestRestartKeepsEverything(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	s.write(`{"insert":{"label":[[400,"hot"]],"edge":[[400,1]]}}`)
	w := s.watch(s.dial("quic"), "g/hot/400", "rows")
	w.until("[[400 1]]")
	before, _ := w.state.Sequence()
	s.stop()
	s.start()
	if rev := s.write(`{"insert":{"edge":[[400,2]]}}`); rev != 3 {
		t.Errorf("revision %d after the restart", rev)
	}
	again := s.watch(s.dial("quic"), "g/hot/400", "rows")
	again.until("[[400 1] [400 2]]")
	if after, _ := again.state.Sequence(); after <= before {
		t.Errorf("group sequence %d after the restart is not above %d", after, before)
	}
	if again.state.Epoch() == w.state.Epoch() {
		t.Error("the epoch did not change")
	}
}

func TestSecondServerOnTheSameDirectoryIsRefused(t *testing.T) {
	s := startServer(t)
	cfg := config.Default()
	cfg.DataDir, cfg.AdminKey = s.dir, testKey
	cfg.DataListen, cfg.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	_, err := host.Start(t.Context(), cfg, host.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("got %v", err)
	}
}

// upgrade asks for a WebSocket and returns the status of the refusal.
func (s *server) upgrade(protocols, origin string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://"+s.running.DataAddr()+"/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
		"Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-Websocket-Protocol": protocols,
	} {
		req.Header.Set(name, text)
	}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	status, _ := s.do(req)
	return status
}

func TestForeignHostAndOriginAreRefused(t *testing.T) {
	s := startServer(t)
	for _, c := range []struct{ name, host, origin string }{
		{"host", "heddle.example", ""},
		{"origin", "", "http://heddle.example"},
	} {
		for _, addr := range []string{s.running.DataAddr(), s.running.AdminAddr()} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/certificate.sha256", nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.host != "" {
				req.Host = c.host
			}
			if c.origin != "" {
				req.Header.Set("Origin", c.origin)
			}
			if status, body := s.do(req); status != http.StatusForbidden {
				t.Errorf("foreign %s: %d %s", c.name, status, body)
			}
		}
	}
	if status := s.upgrade("qmux-02.moq-lite-05", "http://heddle.example"); status != 403 {
		t.Errorf("WebSocket from a foreign page: %d", status)
	}
}

func TestClientThatOffersNothingWeSpeakIsRefused(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	pin := s.running.CertificateSHA256()
	cfg := quic.DialConfig{CertificateSHA256: &pin, Protocols: []string{"moq-lite-99"}}
	if _, err := quic.Dial(ctx, s.running.DataAddr(), cfg); err == nil {
		t.Error("native QUIC with an unknown version was accepted")
	}
	if _, err := quic.DialWebTransport(ctx, "https://"+s.running.DataAddr()+"/", cfg); err == nil {
		t.Error("WebTransport with an unknown version was accepted")
	}
	if status := s.upgrade("webtransport, qmux-02", ""); status != 400 {
		t.Errorf("WebSocket with bare names: %d", status)
	}
}

func TestReadiness(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	for _, path := range []string{"/livez", "/readyz"} {
		if status, body := s.call("GET", path, "", ""); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	status, body := s.call("GET", "/metrics", "", "")
	for _, name := range []string{
		"heddle_transactions_total", "heddle_commit_seconds_count", "heddle_journal_append_seconds_sum",
		"heddle_engine_commit_seconds_total", "heddle_watched_keys", "heddle_viewers",
		"heddle_sessions", "heddle_frames_sent_total", "heddle_sent_bytes_total",
		"heddle_groups_superseded_total", "heddle_stream_credit_waits_total",
	} {
		if status != 200 || !strings.Contains(body, name+" ") {
			t.Errorf("/metrics (%d) lacks %s", status, name)
		}
	}
}

// TestGarbageHarmsNobody sends nonsense over every transport while a viewer
// watches, and expects the viewer to notice nothing.
func TestGarbageHarmsNobody(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	s.write(`{"insert":{"label":[[400,"hot"]],"edge":[[400,1]]}}`)
	w := s.watch(s.dial("webtransport"), "g/hot/400", "rows")
	w.until("[[400 1]]")
	pin := s.running.CertificateSHA256()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	bad, err := quic.Dial(ctx, s.running.DataAddr(),
		quic.DialConfig{CertificateSHA256: &pin, Protocols: lite.VersionNames()})
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range [][]byte{
		{0x3f},
		{0x02, 0x40},
		{0x01, 0x05, 0xff},
		{0x02, 0x03, 0x00, 0x7f, 0x01},
		{0x06, 0x02, 0x01, 0xff},
		bytes.Repeat([]byte{0xff}, 4096),
	} {
		stream, err := bad.OpenStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// The server may have refused the stream before it was all sent.
		_, _ = stream.Write(message)
		_ = stream.Close()
		if err := stream.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(stream)
		var reset *protocol.StreamError
		if !errors.As(err, &reset) || !reset.Remote {
			t.Errorf("garbage % x: %v, want a reset", message[:min(8, len(message))], err)
		}
	}
	setup := []byte{0x01, 0x01, 0x00}
	for range 2 { // a second SETUP ends the session
		uni, err := bad.OpenUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = uni.Write(setup) // the session may be closed already
		_ = uni.Close()
	}
	select {
	case <-bad.Context().Done():
	case <-ctx.Done():
		t.Fatal("a second SETUP did not end the session")
	}
	var closed *protocol.SessionError
	if err := context.Cause(bad.Context()); !errors.As(err, &closed) ||
		closed.Code != protocol.SessionProtocolViolation {
		t.Errorf("a second SETUP: %v", err)
	}
	raw, err := net.Dial("tcp", s.running.DataAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Write([]byte("\x16\x03\x01garbage\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	s.write(`{"insert":{"edge":[[400,2]]}}`)
	w.until("[[400 1] [400 2]]")
}

func TestDeletedGraphTellsItsViewers(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	s.write(`{"insert":{"label":[[400,"hot"]],"edge":[[400,1]]}}`)
	w := s.watch(s.dial("quic"), "g/hot/400", "rows")
	w.until("[[400 1]]")
	if status, body := s.call("DELETE", "/v1/graphs/g", "", ""); status/100 != 2 {
		t.Fatalf("delete: %d %s", status, body)
	}
	change, err := w.next()
	if err != nil || change.Closed == nil || change.Closed.Message != "graph g was deleted" {
		t.Errorf("the last frame: %+v, %v", change.Closed, err)
	}
	var reset *protocol.StreamError
	if _, err := w.next(); !errors.As(err, &reset) || reset.Code != protocol.CodeViewDropped {
		t.Errorf("the track's end: %v", err)
	}
	s.apply(testProgram) // the name is free again
}
