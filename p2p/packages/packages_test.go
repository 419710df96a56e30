package packages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

var networkID = wire.SumCID([]byte("network"))

// list is a Source of statements about environments numbered by their position.
type list []wire.SignedEnvironmentPackage

func (l list) Packages(manifest wire.CID, most int) (records [][]byte, _ error) {
	for _, p := range l {
		if len(records) < most && (!manifest.Defined() || p.Manifest == manifest) {
			records = append(records, p.Raw)
		}
	}
	return records, nil
}

func manifest(n int) wire.CID { return wire.SumCID([]byte{byte(n), byte(n >> 8)}) }

// kept are statements about n environments.
func kept(t testing.TB, n int) (l list) {
	t.Helper()
	for i := range n {
		p, err := wire.SignEnvironmentPackage(wire.NewKey(simnet.Key(9, 0)), wire.EnvironmentPackage{
			Name: "letters", Version: "1.0.0", Manifest: manifest(i), Created: time.UnixMilli(1),
		})
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, p)
	}
	return l
}

// between runs a test with two connected hosts.
func between(t *testing.T, test func(t *testing.T, asker, answerer host.Host)) {
	simnet.Run(t, 4, 2, func(t *testing.T, hosts []host.Host) {
		test(t, hosts[0], hosts[1])
	})
}

func TestAskGetsWhatIsKept(t *testing.T) {
	between(t, func(t *testing.T, asker, answerer host.Host) {
		all := kept(t, 5)
		server := Serve(answerer, networkID, all)
		defer server.Close()
		for name, c := range map[string]struct {
			network, manifest wire.CID
			most, want        int
		}{
			"all":             {networkID, wire.CID{}, 100, 5},
			"some":            {networkID, wire.CID{}, 3, 3},
			"none":            {networkID, wire.CID{}, 0, 0},
			"one":             {networkID, manifest(2), 100, 1},
			"another":         {networkID, manifest(7), 100, 0},
			"another network": {manifest(1), wire.CID{}, 100, 0},
		} {
			got, err := Ask(t.Context(), asker, answerer.ID(), c.network, c.manifest, c.most)
			if err != nil || len(got) != c.want {
				t.Errorf("%s: %d packages, want %d, %v", name, len(got), c.want, err)
			}
			for _, p := range got {
				if p.Author != all[0].Author || c.manifest.Defined() && p.Manifest != c.manifest {
					t.Errorf("%s: %+v", name, p)
				}
			}
		}
	})
}

// A peer that keeps more than an answer holds gives as many as fit.
func TestAnswersFitTheirLimit(t *testing.T) {
	between(t, func(t *testing.T, asker, answerer host.Host) {
		record := bytes.Repeat([]byte("x"), wire.MaxGossipBytes)
		server := Serve(answerer, networkID, raws{record})
		defer server.Close()
		_, err := Ask(t.Context(), asker, answerer.ID(), networkID, wire.CID{}, wire.MaxPackageRecords)
		if !errors.Is(err, ErrMisbehaved) || errors.Is(err, stream.ErrTooLarge) {
			t.Errorf("records that are no statements, in an answer that fits: %v", err)
		}
	})
}

// raws repeats records as often as is asked for.
type raws [][]byte

func (r raws) Packages(_ wire.CID, most int) (records [][]byte, _ error) {
	for i := range most {
		records = append(records, r[i%len(r)])
	}
	return records, nil
}

// Whatever a hostile peer answers costs the asker a bounded wait and nothing else.
func TestHostileAnswers(t *testing.T) {
	signed := kept(t, 3)
	forged := bytes.Clone(signed[0].Raw)
	forged[len(forged)-1] ^= 1
	frame := func(records ...[]byte) []byte {
		raw, err := wire.EncodePackagesResponse(wire.PackagesResponse{Packages: records})
		if err != nil {
			t.Fatal(err)
		}
		return stream.AppendFrame(nil, raw)
	}
	for name, c := range map[string]struct {
		answer  []byte
		endless bool
		caught  bool
	}{
		"a forged signature":      {frame(forged), false, true},
		"another environment":     {frame(signed[1].Raw), false, true},
		"one good, one not":       {frame(signed[0].Raw, []byte("junk")), false, true},
		"more than was asked for": {frame(signed[0].Raw, signed[0].Raw, signed[0].Raw), false, true},
		"junk":                    {stream.AppendFrame(nil, []byte("\x0a\xff")), false, true},
		"an oversized answer":     {[]byte{0xff, 0xff, 0x7f}, false, true},
		"half an answer":          {frame(signed[0].Raw)[:50], false, false},
		"nothing":                 {nil, false, false},
		"endless data":            {bytes.Repeat([]byte{0x80}, 4096), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			between(t, func(t *testing.T, asker, answerer host.Host) {
				answerer.SetStreamHandler(Protocol, func(s network.Stream) {
					// A stream that is closed with its question unread is reset before the answer arrives.
					if _, err := stream.ReadFrame(bufio.NewReader(s), wire.MaxPackagesRequestBytes); err != nil {
						t.Error(err)
					}
					for {
						if _, err := s.Write(c.answer); err != nil || !c.endless {
							break
						}
					}
					_ = s.Close()
				})
				_, err := Ask(t.Context(), asker, answerer.ID(), networkID, manifest(0), 2)
				if err == nil || errors.Is(err, ErrMisbehaved) != c.caught {
					t.Errorf("caught is %v: %v", !c.caught, err)
				}
			})
		})
	}
	between(t, func(t *testing.T, asker, answerer host.Host) {
		answerer.SetStreamHandler(Protocol, func(s network.Stream) { // Never answers.
			_, _ = s.Read(make([]byte, 1000))
			_, _ = s.Read(make([]byte, 1000))
		})
		start := time.Now()
		if _, err := Ask(t.Context(), asker, answerer.ID(), networkID, manifest(0), 2); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("a silent peer: %v after %s", err, time.Since(start))
		}
	})
}

// script is a stream whose peer sends fixed bytes and reads everything.
type script struct {
	*bytes.Reader
	written bytes.Buffer
}

func (s *script) Write(b []byte) (int, error) { return s.written.Write(b) }
func (*script) SetDeadline(time.Time) error   { return nil }

// FuzzServe sends a server any bytes: an answer that it gives is valid and within the request's limits.
func FuzzServe(f *testing.F) {
	request := func(q wire.PackagesRequest) []byte {
		raw, err := wire.EncodePackagesRequest(q)
		if err != nil {
			f.Fatal(err)
		}
		return stream.AppendFrame(nil, raw)
	}
	f.Add(request(wire.PackagesRequest{Network: networkID, MaxPackages: 256}))
	f.Add(request(wire.PackagesRequest{Network: networkID, Manifest: manifest(1), MaxPackages: 2}))
	f.Add(request(wire.PackagesRequest{Network: manifest(1), MaxPackages: 2}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	source := raws{bytes.Repeat([]byte("x"), wire.MaxGossipBytes), []byte("y")}
	f.Fuzz(func(t *testing.T, sent []byte) {
		st := &script{Reader: bytes.NewReader(sent)}
		if err := (answerer{networkID, source}).handle(st); err != nil {
			return
		}
		raw, err := stream.ReadFrame(bufio.NewReader(&st.written), wire.MaxPackagesResponseBytes)
		if err != nil {
			t.Fatalf("no answer to what is valid: %v", err)
		}
		response, err := wire.DecodePackagesResponse(raw)
		if err != nil {
			t.Fatalf("the server sent what is not valid: %v", err)
		}
		question, err := stream.ReadFrame(bufio.NewReader(bytes.NewReader(sent)), wire.MaxPackagesRequestBytes)
		if err != nil {
			t.Fatal("the server answered what was not asked")
		}
		q, err := wire.DecodePackagesRequest(question)
		if err != nil || len(response.Packages) > int(q.MaxPackages) || len(response.Packages) > 0 && q.Network != networkID {
			t.Fatalf("%d packages for %+v, %v", len(response.Packages), q, err)
		}
	})
}

// FuzzOpen gives an asker any answer.
func FuzzOpen(f *testing.F) {
	raw, err := wire.EncodePackagesResponse(wire.PackagesResponse{Packages: [][]byte{kept(f, 1)[0].Raw}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := open(raw, wire.PackagesRequest{Network: networkID, Manifest: manifest(0), MaxPackages: 4})
		if err != nil && !errors.Is(err, ErrMisbehaved) {
			t.Fatalf("an error of no kind: %v", err)
		}
		for _, p := range list {
			if p.Manifest != manifest(0) || len(list) > 4 {
				t.Fatalf("%+v", list)
			}
		}
	})
}
