package digest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// sizes are shapes of objects of 50 KB.
var sizes = map[string]struct{ keys, size int }{
	"one key of 50 KB":      {1, 50_000},
	"fifty keys of 1 KB":    {50, 1000},
	"a thousand keys of 50": {1000, 50},
}

func BenchmarkOfConfigMap(b *testing.B) {
	for name, s := range sizes {
		data := map[string]string{}
		for i := range s.keys {
			data[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", s.size)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(s.keys * s.size))
			for b.Loop() {
				digest.OfConfigMap("shop", "settings", data, nil)
			}
		})
	}
}

func BenchmarkOfSecret(b *testing.B) {
	key := mustKey(b, secretOf(1))
	for name, s := range sizes {
		data := map[string][]byte{}
		for i := range s.keys {
			data[fmt.Sprintf("key-%d", i)] = []byte(strings.Repeat("x", s.size))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(s.keys * s.size))
			for b.Loop() {
				digest.OfSecret(key, "shop", "db", data)
			}
		})
	}
}

func BenchmarkConsumed(b *testing.B) {
	data := map[string]string{}
	for i := range 20 {
		data[fmt.Sprintf("key-%d", i)] = "x"
	}
	content := digest.OfConfigMap("shop", "settings", data, nil)
	use := workload.Consumption{Object: configMap("settings"), Env: named("key-1", "key-2"), Files: all}
	b.ReportAllocs()
	for b.Loop() {
		content.Consumed(use)
	}
}

// TestDigestingDoesNotCopyValues keeps the allocations of an object independent of the size of its values.
func TestDigestingDoesNotCopyValues(t *testing.T) {
	value := strings.Repeat("x", 1<<20)
	data, binary := map[string]string{"a": value}, map[string][]byte{"a": []byte(value)}
	key := mustKey(t, secretOf(1))
	for name, use := range map[string]func(){
		"data":       func() { digest.OfConfigMap("shop", "settings", data, nil) },
		"binaryData": func() { digest.OfConfigMap("shop", "settings", nil, binary) },
		"a Secret":   func() { digest.OfSecret(key, "shop", "db", binary) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		use()
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
			t.Errorf("%s: %d bytes are allocated for a value of 1 MiB", name, got)
		}
	}
}
