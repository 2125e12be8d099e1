package admin

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"hash"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/heddle-live/heddle/engine"
)

// loadRows writes a CSV file as one transaction. The file is decoded as it
// arrives, so a new program between its check and its commit cannot be decoded
// against again: the client is told to repeat.
func (a *API) loadRows(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	flags, err := queryFlags(r, a.flagsOf("load-rows"))
	if err != nil {
		return err
	}
	header, given := flags["header"]
	tx, err := a.transaction(r, "load-rows")
	if err != nil {
		return err
	}
	if tx.Program, err = a.service.Schema(graph); err != nil {
		return graphError(graph, err)
	}
	relation, problem := baseRelation(tx.Program, pathValue(r, "relation"))
	if problem != nil {
		return problem
	}
	if err := checkLoadHeaders(r, a.limits.LoadBytes); err != nil {
		return err
	}
	var sum hash.Hash
	sent := io.Reader(http.MaxBytesReader(w, r.Body, a.limits.LoadBytes))
	if tx.IdempotencyKey != "" {
		sum = requestHash(r)
		sent = io.TeeReader(sent, sum)
	}
	plain, err := unpack(sent, a.limits.LoadBytes)
	if err == nil {
		var ops []Op
		ops, err = decodeCSV(plain, relation, header || !given, a.limits.LoadRows)
		tx.Statements = engine.Plain(ops)
	}
	if err != nil {
		// The rest is read as well: a client that is still sending would see a
		// broken connection instead of the answer.
		_, _ = io.Copy(io.Discard, sent)
		return loadError(err)
	}
	if sum != nil {
		if _, err := io.Copy(io.Discard, sent); err != nil {
			return loadError(err)
		}
		sum.Sum(tx.RequestHash[:0])
	}
	receipt, err := a.service.Transact(r.Context(), graph, tx)
	if err != nil {
		return graphError(graph, err)
	}
	writeReceipt(w, receipt)
	return nil
}

// checkLoadHeaders refuses a load by its headers, before its body is read.
func checkLoadHeaders(r *http.Request, limit int64) error {
	if r.ContentLength > limit {
		return tooLarge(limit, limitLoad)
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media == "application/json" {
		return newProblem(http.StatusUnsupportedMediaType, "media_type",
			"this route takes CSV, not JSON").
			withHint("send JSON rows to the graph's /transactions")
	}
	switch encoding := r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity", "gzip", "x-gzip":
		return nil
	default:
		return newProblem(http.StatusUnsupportedMediaType, "encoding",
			"Content-Encoding %q is not known here", shortened(encoding)).
			withHint("send the file plain or as gzip")
	}
}

// unpack returns the text of a body that is plain or gzip, which is told by its
// first bytes, without a byte order mark. Unpacked it may be as long as limit.
func unpack(sent io.Reader, limit int64) (io.Reader, error) {
	plain := bufio.NewReaderSize(sent, 64<<10)
	if magic, _ := plain.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		packed, err := gzip.NewReader(plain)
		if err != nil {
			return nil, err
		}
		limited := http.MaxBytesReader(nil, packed, limit)
		plain = bufio.NewReaderSize(limited, 64<<10)
	}
	mark, err := plain.Peek(3)
	switch {
	case bytes.Equal(mark, []byte{0xef, 0xbb, 0xbf}):
		_, _ = plain.Discard(3)
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return nil, newProblem(http.StatusBadRequest, "not_utf8", "the file is UTF-16").
			withHint("save it as UTF-8")
	case err != nil && err != io.EOF:
		return nil, err
	}
	return plain, nil
}

// loadError words what went wrong while a load's body was read.
func loadError(err error) error {
	if _, ok := errors.AsType[*Problem](err); ok {
		return err
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return newProblem(http.StatusBadRequest, "gzip_invalid", "the gzip data is damaged: %s",
			err)
	}
	return bodyError(err, limitLoad)
}
