package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// TestGoldenBytes fixes every message's encoding: a change breaks networks that exist.
func TestGoldenBytes(t *testing.T) {
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			b, err := f.encode()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b, golden(t, f.name+".bin", b)) {
				t.Errorf("the encoding changed: %x", b)
			}
			got, err := f.decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(f.value, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	extra := protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), []byte("from the future"))
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			b, err := f.encode()
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := domains[f.name]; ok {
				payload, _, err := Open(d, b)
				if err != nil {
					t.Fatal(err)
				}
				// The envelope has one encoding: nobody gives a statement a second CID.
				if _, err := f.decode(append(bytes.Clone(b), extra...)); !errors.Is(err, ErrMalformed) {
					t.Errorf("an envelope with more fields: %v", err)
				}
				if b, err = Sign(testKey('a'), d, append(payload, extra...)); err != nil {
					t.Fatal(err)
				}
			} else {
				b = append(b, extra...)
			}
			got, err := f.decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(f.value, got); d != "" {
				t.Error(d)
			}
		})
	}
}

var domains = map[string]Domain{
	"charter": DomainCharter, "release": DomainRelease, "announcement": DomainAnnouncement, "presence": DomainPresence,
	"environment-package": DomainEnvironment,
}

// withMajor changes the first field of a message that starts with its major.
func withMajor(t *testing.T, payload []byte, major byte) []byte {
	t.Helper()
	if payload[0] != 1<<3 || payload[1] != Major {
		t.Fatalf("the major does not come first: %x", payload[:2])
	}
	if major == 0 {
		return payload[2:]
	}
	return append([]byte{1 << 3, major}, payload[2:]...)
}

func TestMajors(t *testing.T) {
	for _, f := range forms()[:6] {
		t.Run(f.name, func(t *testing.T) {
			b, err := f.encode()
			if err != nil {
				t.Fatal(err)
			}
			decodeWith := func(major byte) error {
				var changed []byte
				if d, ok := domains[f.name]; ok {
					payload, _, err := Open(d, b)
					if err != nil {
						t.Fatal(err)
					}
					if changed, err = Sign(testKey('a'), d, withMajor(t, payload, major)); err != nil {
						t.Fatal(err)
					}
				} else {
					changed = withMajor(t, b, major)
				}
				_, err := f.decode(changed)
				return err
			}
			if err := decodeWith(Major + 1); !errors.Is(err, ErrNewerMajor) || !strings.Contains(err.Error(), "upgrade lightswarm") {
				t.Errorf("a newer major: %v", err)
			}
			if err := decodeWith(0); !errors.Is(err, ErrMalformed) {
				t.Errorf("no major: %v", err)
			}
		})
	}
}

func TestSizesAreCheckedFirst(t *testing.T) {
	huge := make([]byte, 2<<20)
	for _, f := range forms() {
		if _, err := f.decode(huge); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", f.name, err)
		}
		// Zero bytes are no field numbers, so below the limit the same input is malformed.
		if _, err := f.decode(huge[:20]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s of 20 zeros: %v", f.name, err)
		}
	}
	if _, err := Sign(testKey('a'), DomainRelease, make([]byte, MaxGossipBytes)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("signed a payload that nobody would open: %v", err)
	}
}

// TestLargestMessagesFit fills messages up to their limits: whatever validates can be sent.
func TestLargestMessagesFit(t *testing.T) {
	k := testKey('a')
	release := testRelease()
	release.Version, release.GroupsTrained, release.GroupsPerVersion = math.MaxUint64, math.MaxUint64, MaxGroupsPerVersion
	release.Deltas = nil
	for i := range MaxDeltas {
		release.Deltas = append(release.Deltas, DeltaRef{FromVersion: math.MaxUint64 - 1 - uint64(i), CID: SumCID([]byte{byte(i)}), Bytes: MaxDeltaBytes})
	}
	if _, err := SignRelease(k, release); err != nil {
		t.Error(err)
	}
	announcement := testAnnouncement()
	announcement.Sequence, announcement.Counter, announcement.PolicyVersion = math.MaxUint64, math.MaxUint64, math.MaxUint64
	if _, err := SignAnnouncement(k, announcement); err != nil {
		t.Error(err)
	}
	presence := testPresence()
	presence.Roles, presence.AgentVersion = math.MaxUint32, strings.Repeat("v", MaxVersionBytes)
	if _, err := SignPresence(k, presence); err != nil {
		t.Error(err)
	}
	charter := testCharter()
	charter.Name, charter.Nonce = strings.Repeat("n", MaxNameBytes), make([]byte, MaxNonceBytes)
	charter.Learners, charter.Environments = nil, nil
	for i := range MaxLearners {
		charter.Learners = append(charter.Learners, testKey(byte(i)).Peer())
	}
	for i := range MaxEnvironments {
		charter.Environments = append(charter.Environments, EnvironmentRef{
			Manifest: SumCID([]byte{byte(i)}), Name: strings.Repeat("n", MaxNameBytes), Weight: MaxEnvironmentWeight,
			TrainTasks: MaxSplitTasks, ValidationTasks: MaxSplitTasks,
		})
	}
	if _, err := SignCharter(k, charter); err != nil {
		t.Error(err)
	}
	var request BlockRequest
	for i := range MaxBlockRequestCIDs {
		request.CIDs = append(request.CIDs, SumCID(fmt.Append(nil, i)))
	}
	if _, err := EncodeBlockRequest(request); err != nil {
		t.Error(err)
	}
	head := HeadRequest{Network: SumCID(nil), MaxReleases: MaxHeadReleases, MaxAnnouncements: MaxHeadAnnouncements}
	for range MaxHeadCursors {
		head.Cursors = append(head.Cursors, Cursor{Peer: k.Peer(), FromSequence: math.MaxUint64})
	}
	if _, err := EncodeHeadRequest(head); err != nil {
		t.Error(err)
	}
	if _, err := EncodeBlockHeader(BlockHeader{Index: MaxBlockRequestCIDs - 1, Found: true, Bytes: MaxBlockBytes}); err != nil {
		t.Error(err)
	}
	var peers PeersResponse
	for range MaxPeerRecords {
		peers.Records = append(peers.Records, make([]byte, MaxPeerRecordBytes))
	}
	if _, err := EncodePeersResponse(peers); !errors.Is(err, ErrTooLarge) {
		t.Errorf("records above the limit of the response: %v", err)
	}
	var packages PackagesResponse
	for range MaxPackageRecords {
		packages.Packages = append(packages.Packages, make([]byte, MaxGossipBytes))
	}
	if _, err := EncodePackagesResponse(packages); !errors.Is(err, ErrTooLarge) {
		t.Errorf("packages above the limit of the response: %v", err)
	}
}

func TestTimesAreCutToMilliseconds(t *testing.T) {
	c := testCharter()
	c.Created = testTime.Add(999 * time.Microsecond).In(time.FixedZone("elsewhere", 3600))
	s, err := SignCharter(testKey('a'), c)
	if err != nil {
		t.Fatal(err)
	}
	if s.Created != testTime {
		t.Errorf("%v became %v", c.Created, s.Created)
	}
}

func TestSignedMessagesSayWhoAndWhat(t *testing.T) {
	k := testKey('c')
	s, err := SignRelease(k, testRelease())
	if err != nil {
		t.Fatal(err)
	}
	raw := bytes.Clone(s.Raw)
	opened, err := OpenRelease(raw)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, opened); d != "" {
		t.Error(d)
	}
	if s.Signer != k.Peer() || s.ID != SumCID(s.Raw) {
		t.Errorf("signer %s, id %s", s.Signer, s.ID)
	}
	raw[0] = 0
	if opened.ID != SumCID(opened.Raw) {
		t.Error("a change of the input reached the opened message")
	}
	// No field of its own hides what it is embedded for.
	if _, err := OpenAnnouncement(s.Raw); !errors.Is(err, ErrSignature) {
		t.Errorf("a release opened as an announcement: %v", err)
	}
}

func TestPurposesThatDoNotFit(t *testing.T) {
	for _, p := range []wirepb.Purpose{0, 4, 257, -1} {
		m := testAnnouncement().proto()
		m.Purpose = p
		payload, err := marshal("announcement", MaxGossipBytes, m)
		if err != nil {
			t.Fatal(err)
		}
		var invalid *ValidationError
		if _, err := decodeAnnouncement(payload); !errors.As(err, &invalid) || invalid.Field != "purpose" {
			t.Errorf("purpose %d: %v", p, err)
		}
	}
}

func TestNames(t *testing.T) {
	if got := (RoleLearner | RoleRelay).String(); got != "learner,relay" {
		t.Error(got)
	}
	if PurposeTrain.String() != "train" || PurposeEvaluateSampled.String() != "evaluate-sampled" ||
		PurposeEvaluateGreedy.String() != "evaluate-greedy" || Purpose(9).String() != "unknown" {
		t.Error("purposes have other names")
	}
	if m := testManifest(); m.Tasks(SplitValidation) != 4096 || m.Tasks("none") != 0 {
		t.Error("Tasks counts wrong")
	}
	if n := testPolicyManifest().Bytes(); n != 1<<20+17 {
		t.Errorf("the blocks hold %d bytes", n)
	}
}
