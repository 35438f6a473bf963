package loaded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"tidemark.dev/tidemark/loaded"
)

// limits is what a program keeps of its configuration.
type limits struct{ perSecond int }

// reload reads the mounted files again. The program goes on with what it had when they are not good.
func (l *limits) reload(source *loaded.Source, dir string) error {
	load := source.Begin()
	files, err := load.ReadDir(dir)
	if err != nil {
		load.Failed()
		return err
	}
	n, err := strconv.Atoi(string(files["per-second"]))
	if err != nil {
		load.Failed()
		return errors.New("per-second is not a number")
	}
	l.perSecond = n
	load.Done()
	return nil
}

// A program that reads its mounted files again when they change, for example on a signal or a file event.
func Example_reloads() {
	dir, err := os.MkdirTemp("", "volume")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mount := func(value string) { _ = os.WriteFile(filepath.Join(dir, "per-second"), []byte(value), 0o600) }

	reporter, err := loaded.New("shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	source, current := reporter.ConfigMap("limits"), limits{}
	for _, value := range []string{"100", "a hundred", "50"} {
		mount(value)
		err := current.reload(source, dir)
		o := reporter.Report().Objects[0]
		fmt.Printf("%d a second, digest %s…, last failed: %t, error: %v\n", current.perSecond, o.Digest[:11], o.LastFailed, err)
	}
	// Output:
	// 100 a second, digest v1-c4ilhcuv…, last failed: false, error: <nil>
	// 100 a second, digest v1-c4ilhcuv…, last failed: true, error: per-second is not a number
	// 50 a second, digest v1-rtre3gw2…, last failed: false, error: <nil>
}
