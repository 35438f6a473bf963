package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// releaseRecord is what Helm's records of a release say.
type releaseRecord struct {
	// revision is the newest; 0 when there is no record.
	revision int64
	// named are the names, of those looked for, in the manifests of the newest revision and of the newest that is deployed.
	named map[string]bool
}

// helmRecord is the place of one record.
type helmRecord struct {
	kind     workload.ObjectKind
	name     string
	revision int64
	status   string
}

// releaseRecord reads the records of the release, which Helm keeps as Secrets or as ConfigMaps. While a deploy is under way,
// nothing can be said of what the release needs, and that is an error.
func (c Cleanup) releaseRecord(ctx context.Context, release string, objects []snapshot.Snapshot) (releaseRecord, error) {
	newest, deployed, err := c.helmRecords(ctx, release)
	if err != nil || newest.revision == 0 {
		return releaseRecord{}, err
	}
	if strings.HasPrefix(newest.status, "pending-") {
		return releaseRecord{}, fmt.Errorf("revision %d of release %s is %s: %s while it is being deployed", newest.revision, release, newest.status, notCleaned)
	}
	out := releaseRecord{revision: newest.revision, named: map[string]bool{}}
	wanted := map[string]bool{}
	for _, o := range objects {
		wanted[o.Object.Name] = true
	}
	records := []helmRecord{newest}
	if deployed.revision > 0 && deployed.revision != newest.revision {
		records = append(records, deployed)
	}
	for _, r := range records {
		text, err := c.helmManifest(ctx, r)
		if err != nil {
			return releaseRecord{}, fmt.Errorf("read revision %d of release %s: %s: %w", r.revision, release, notCleaned, err)
		}
		for _, word := range strings.FieldsFunc(text, notInNames) {
			if word = strings.Trim(word, "-."); wanted[word] {
				out.named[word] = true
			}
		}
	}
	return out, nil
}

// helmRecords finds the records of the newest revision and of the newest that is deployed.
func (c Cleanup) helmRecords(ctx context.Context, release string) (newest, deployed helmRecord, err error) {
	for _, kind := range []workload.ObjectKind{workload.Secret, workload.ConfigMap} {
		gvk := gvkOf(kind)
		err := EachItem(ctx, c.Client, MetadataList(gvk), PageSize, func(m *metav1.PartialObjectMetadata) {
			revision, _ := strconv.ParseInt(m.Labels["version"], 10, 64)
			r := helmRecord{kind, m.Name, revision, m.Labels["status"]}
			if r.revision > newest.revision {
				newest = r
			}
			if r.status == "deployed" && r.revision > deployed.revision {
				deployed = r
			}
		}, client.InNamespace(c.Namespace), client.MatchingLabels{"owner": "helm", "name": release})
		needs := right{"list", plural(gvk), c.Namespace, "what the release has deployed is not known, so nothing is deleted"}
		if err := blind(err, needs); err != nil {
			return helmRecord{}, helmRecord{}, err
		}
	}
	return newest, deployed, nil
}

// helmManifest reads the manifest of a revision with those of its hooks.
func (c Cleanup) helmManifest(ctx context.Context, r helmRecord) (string, error) {
	key := client.ObjectKey{Namespace: c.Namespace, Name: r.name}
	var encoded []byte
	if r.kind == workload.Secret {
		secret := &corev1.Secret{}
		if err := c.Client.Get(ctx, key, secret); err != nil {
			return "", blind(err, right{"get", "secrets", c.Namespace, "the record of the release is not known"})
		}
		encoded = secret.Data["release"]
	} else {
		cm := &corev1.ConfigMap{}
		if err := c.Client.Get(ctx, key, cm); err != nil {
			return "", blind(err, right{"get", "configmaps", c.Namespace, "the record of the release is not known"})
		}
		encoded = []byte(cm.Data["release"])
	}
	return decodeRelease(encoded)
}

// maxRecord bounds a record once it is unpacked; packed it is less than a mebibyte.
const maxRecord = 256 << 20

// decodeRelease gives the manifests of a release as Helm packs it: JSON, usually gzipped, in base64.
func decodeRelease(encoded []byte) (string, error) {
	packed, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	var content io.Reader = bytes.NewReader(packed)
	if bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		if content, err = gzip.NewReader(content); err != nil {
			return "", fmt.Errorf("unpack: %w", err)
		}
	}
	var record struct {
		Manifest string `json:"manifest"`
		Hooks    []struct {
			Manifest string `json:"manifest"`
		} `json:"hooks"`
	}
	if err := json.NewDecoder(io.LimitReader(content, maxRecord)).Decode(&record); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	text := record.Manifest
	for _, h := range record.Hooks {
		text += "\n" + h.Manifest
	}
	return text, nil
}
