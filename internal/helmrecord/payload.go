package helmrecord

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/release"
)

// payloadKey is the only key of a record.
const payloadKey = "release"

// maxPayload bounds a payload once it is unpacked, in bytes; packed it is less than a mebibyte.
const maxPayload = 256 << 20

// Packed is a payload as a record holds it: JSON, usually gzipped, in base64.
type Packed []byte

// OfSecret is the payload of a record that is a Secret.
func OfSecret(s *corev1.Secret) Packed { return s.Data[payloadKey] }

// OfConfigMap is the payload of a record that is a ConfigMap.
func OfConfigMap(c *corev1.ConfigMap) Packed { return Packed(c.Data[payloadKey]) }

// IntoSecret puts the payload in the place of the one that the Secret has, with the status that goes with it.
func (p Packed) IntoSecret(s *corev1.Secret, status release.Status) {
	s.Data[payloadKey], s.Labels[LabelStatus] = p, string(status)
}

// IntoConfigMap does the same for a ConfigMap.
func (p Packed) IntoConfigMap(c *corev1.ConfigMap, status release.Status) {
	c.Data[payloadKey], c.Labels[LabelStatus] = string(p), string(status)
}

// Payload is what is read of a record's payload.
type Payload struct {
	Name     string `json:"name"`
	Version  int64  `json:"version"`
	Manifest string `json:"manifest"`
	Hooks    []Hook `json:"hooks"`
	Info     struct {
		Status release.Status `json:"status"`
	} `json:"info"`
}

// Hook is an object that Helm makes beside those of the manifest.
type Hook struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Manifest string   `json:"manifest"`
	Events   []string `json:"events"`
}

// Unpack reads the payload.
func (p Packed) Unpack() (Payload, error) {
	text, err := p.json()
	if err != nil {
		return Payload{}, err
	}
	var out Payload
	if err := json.Unmarshal(text, &out); err != nil {
		return Payload{}, fmt.Errorf("decode: %w", err)
	}
	return out, nil
}

func (p Packed) json() ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(string(p))
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		return packed, nil
	}
	content, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(content, maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if len(text) > maxPayload {
		return nil, fmt.Errorf("unpack: more than %d bytes", maxPayload)
	}
	return text, nil
}

// WithStatus is the payload with another status and its description. All else stays as Helm wrote it, whichever version that was.
func (p Packed) WithStatus(status release.Status, description string) (Packed, error) {
	text, err := p.json()
	if err != nil {
		return nil, err
	}
	var whole, info map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := json.Unmarshal(whole["info"], &info); err != nil {
		return nil, fmt.Errorf("decode info: %w", err)
	}
	for key, value := range map[string]any{"status": status, "description": description} {
		if info[key], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if whole["info"], err = json.Marshal(info); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if text, err = json.Marshal(whole); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return pack(text)
}

// pack is what Helm does: a record must stay below a mebibyte, so the best compression.
func pack(text []byte) (Packed, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return Packed(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}
