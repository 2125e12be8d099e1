package floor

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
)

// dialTimeout bounds a viewer's connection and greeting.
const dialTimeout = 20 * time.Second

// closer ends a viewer's connection; its reader ends with it.
type closer func() error

func (c closer) Close() error { return c() }

// dial connects the viewer of a key and starts its reader, which reports each
// read to arrived until the connection ends. A frame is far smaller than a
// packet, so each read is one delta.
func dial(
	ctx context.Context, transport, address string, key int, arrived chan<- arrival,
) (io.Closer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var news io.Reader
	var end closer
	var err error
	switch transport {
	case "quic":
		news, end, err = dialNative(ctx, address, key)
	case "webtransport":
		news, end, err = dialWebTransport(ctx, address, key)
	default:
		return nil, fmt.Errorf("unknown transport %q, want quic or webtransport", transport)
	}
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(news, make([]byte, len(greeting))); err != nil {
		_ = end()
		return nil, fmt.Errorf("greeting: %w", err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			_, err := news.Read(buf)
			arrived <- arrival{key: key, at: time.Now(), err: err}
			if err != nil {
				return
			}
		}
	}()
	return end, nil
}

// The server's certificate was made a moment ago by a process of ours, on
// loopback: there is nobody to tell it from.

func dialNative(ctx context.Context, address string, key int) (io.Reader, closer, error) {
	conn, err := quicgo.DialAddr(ctx, address,
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpnNative}},
		&quicgo.Config{MaxIdleTimeout: idleTimeout})
	if err != nil {
		return nil, nil, err
	}
	end := func() error { return conn.CloseWithError(0, "") }
	request, err := conn.OpenStreamSync(ctx)
	if err == nil {
		_, err = request.Write(binary.BigEndian.AppendUint32(nil, uint32(key)))
	}
	var news io.Reader
	if err == nil {
		news, err = conn.AcceptUniStream(ctx)
	}
	if err != nil {
		_ = end()
		return nil, nil, err
	}
	return news, end, nil
}

func dialWebTransport(ctx context.Context, address string, key int) (io.Reader, closer, error) {
	dialer := webtransport.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpnHTTP3}},
		QUICConfig: &quicgo.Config{
			EnableDatagrams: true, EnableStreamResetPartialDelivery: true,
			MaxIdleTimeout: idleTimeout,
		},
	}
	_, session, err := dialer.Dial(ctx, "https://"+address+"/", nil)
	if err != nil {
		return nil, nil, err
	}
	end := func() error {
		err := session.CloseWithError(0, "")
		_ = dialer.Close()
		return err
	}
	request, err := session.OpenStreamSync(ctx)
	if err == nil {
		_, err = request.Write(binary.BigEndian.AppendUint32(nil, uint32(key)))
	}
	var news io.Reader
	if err == nil {
		news, err = session.AcceptUniStream(ctx)
	}
	if err != nil {
		_ = end()
		return nil, nil, err
	}
	return news, end, nil
}
