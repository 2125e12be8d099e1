package floor

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol/quic"
)

// What a write stores besides its fact: as many bytes as a journal's record and
// head have.
const (
	recordBytes = 150
	headBytes   = 48
)

// alpnNative is the application protocol of a viewer over plain QUIC, alpnHTTP3
// that of one over WebTransport.
const (
	alpnNative = "heddle-floor"
	alpnHTTP3  = http3.NextProtoH3
)

// greeting is what a viewer's stream begins with: having read it, the viewer
// knows that it is registered.
const greeting = "hello"

// acceptors take connections at once, as a real listener does.
const acceptors = 8

// idleTimeout and keepAlive keep silent viewers connected.
const (
	idleTimeout = 60 * time.Second
	keepAlive   = 20 * time.Second
)

// ready is the line that a server prints when it takes writes and viewers.
type ready struct {
	Write string `json:"write"` // host:port of HTTP
	View  string `json:"view"`  // host:port of QUIC and WebTransport
}

// server holds what a write needs. Writes come one at a time, viewers before
// them.
type server struct {
	db       *pebble.DB
	revision uint64

	mu      sync.Mutex
	viewers map[uint32]io.Writer // by key; guarded by mu
}

// Serve runs the floor's server: facts by HTTP POST, one synced batch in a
// store in the directory, one stream write to the viewer of the fact's key. It
// prints where it listens as one line of JSON to out and ends with ctx.
func Serve(ctx context.Context, directory string, out io.Writer) (err error) {
	db, err := pebble.Open(directory, &pebble.Options{})
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s := &server{db: db, viewers: map[uint32]io.Writer{}}

	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer socket.Close()
	transport := &quicgo.Transport{Conn: socket}
	defer transport.Close()
	if err := s.acceptViewers(ctx, transport); err != nil {
		return err
	}

	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /write", s.write)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	line, err := json.Marshal(ready{Write: tcp.Addr().String(), View: socket.LocalAddr().String()})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", line)
	if err := web.Serve(tcp); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// acceptViewers starts taking viewers on both protocols until ctx ends.
func (s *server) acceptViewers(ctx context.Context, transport *quicgo.Transport) error {
	certificate, _, err := quic.DevelopmentCertificate(time.Now())
	if err != nil {
		return err
	}
	listener, err := transport.ListenEarly(
		&tls.Config{
			Certificates: []tls.Certificate{certificate},
			NextProtos:   []string{alpnHTTP3, alpnNative},
		},
		&quicgo.Config{
			EnableDatagrams: true, EnableStreamResetPartialDelivery: true,
			MaxIdleTimeout: idleTimeout, KeepAlivePeriod: keepAlive, MaxIncomingStreams: 1000,
		})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	wt := &webtransport.Server{
		H3:          &http3.Server{Handler: mux},
		CheckOrigin: func(*http.Request) bool { return true }, // loopback, and only a bench
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		session, err := wt.Upgrade(w, r)
		if err != nil {
			return
		}
		go func() {
			request, err := session.AcceptStream(ctx)
			if err != nil {
				return
			}
			news, err := session.OpenUniStreamSync(ctx)
			s.register(request, news, err)
		}()
	})
	for range acceptors {
		go func() {
			for {
				conn, err := listener.Accept(ctx)
				if err != nil {
					return
				}
				if conn.ConnectionState().TLS.NegotiatedProtocol == alpnHTTP3 {
					go func() { _ = wt.ServeQUICConn(conn) }()
					continue
				}
				go func() {
					request, err := conn.AcceptStream(ctx)
					if err != nil {
						return
					}
					news, err := conn.OpenUniStreamSync(ctx)
					s.register(request, news, err)
				}()
			}
		}()
	}
	return nil
}

// register reads the key that a viewer asks for and greets it. A viewer that
// fails here is simply not registered: its client waits for the greeting and
// reports.
func (s *server) register(request io.Reader, news io.Writer, err error) {
	var key [4]byte
	if err != nil {
		return
	}
	if _, err := io.ReadFull(request, key[:]); err != nil {
		return
	}
	s.mu.Lock()
	s.viewers[binary.BigEndian.Uint32(key[:])] = news
	s.mu.Unlock()
	_, _ = io.WriteString(news, greeting)
}

// write is the floor itself: what no server that stores a fact and tells one
// viewer can do without.
func (s *server) write(w http.ResponseWriter, r *http.Request) {
	var tx struct {
		Insert map[string][][]int64 `json:"insert"`
	}
	if err := json.NewDecoder(r.Body).Decode(&tx); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if rows := tx.Insert["edge"]; len(rows) != 1 || len(rows[0]) != 2 {
		http.Error(w, "want one edge of two nodes", http.StatusBadRequest)
		return
	}
	src, dst := tx.Insert["edge"][0][0], tx.Insert["edge"][0][1]
	s.revision++
	if err := s.store(src, dst); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	viewer := s.viewers[uint32(src)]
	s.mu.Unlock()
	if viewer != nil {
		frame := fmt.Appendf(nil, `{"revision":%d,"insert":[[%d,%d]]}`, s.revision, src, dst)
		if _, err := viewer.Write(append([]byte{2, byte(len(frame))}, frame...)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"revision":%d}`, s.revision)
}

// store commits the fact, its transaction's record and the log's head in one
// synced batch.
func (s *server) store(src, dst int64) error {
	batch := s.db.NewBatch()
	var space [32]byte
	key := binary.BigEndian.AppendUint64(append(space[:0], "g/1/t/"...), s.revision)
	if err := batch.Set(key, make([]byte, recordBytes), nil); err != nil {
		return err
	}
	key = binary.BigEndian.AppendUint64(append(space[:0], "g/1/f/e/"...), uint64(src))
	key = binary.BigEndian.AppendUint64(key, uint64(dst))
	if err := batch.Set(key, nil, nil); err != nil {
		return err
	}
	if err := batch.Set([]byte("g/1/h"), make([]byte, headBytes), nil); err != nil {
		return err
	}
	return batch.Commit(pebble.Sync)
}
