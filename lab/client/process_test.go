package client_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
)

// childVariable makes the test binary a program that starts a lab and waits to be killed.
const childVariable = "LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(startAndWait())
	}
	flag.Parse()
	// The scenarios of TestLab wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestControlPlaneWithoutNodes(t *testing.T) {
	lab := labtest.Start(t, client.Options{NoNodes: true, FeatureGates: map[string]bool{"PodCertificateRequest": false}})
	if out := labtest.Kubectl(t, lab, "get", "nodes", "-o", "name"); out != "" {
		t.Errorf("there are nodes: %s", out)
	}
	if err := lab.ResetRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests, err := lab.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if strings.Contains(request.UserAgent, "kubectl") && request.Count > 0 {
			t.Errorf("counted before the reset: %+v", request)
		}
	}
	directory := lab.Status().Directory
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(directory); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	select {
	case <-lab.Ended():
	default:
		t.Error("the process still runs")
	}
}

func TestLabEndsWithTheProcessThatStartedIt(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a lab")
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=yes")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var directory, argo string
	if _, err := fmt.Fscanln(out, &directory, &argo); err != nil {
		t.Fatal(err, child.Wait())
	}
	if _, err := os.Stat(directory); err != nil {
		t.Fatal(err)
	}
	// What it runs can be read as long as it has not ended, even when nobody asks for its exit code.
	program := "/proc/" + argo + "/exe"
	if _, err := os.Readlink(program); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // says that it was killed
	labtest.Eventually(t, "the lab to end", func() error {
		if _, err := os.Stat(directory); !errors.Is(err, fs.ErrNotExist) {
			return errors.New("its directory is still there")
		}
		if _, err := os.Readlink(program); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("process %s still runs", argo)
		}
		return nil
	})
}

func startAndWait() int {
	lab, err := client.Start(context.Background(), client.Options{NoNodes: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	argo, err := lab.StartArgoRollouts(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(lab.Status().Directory, argo.PID())
	<-lab.Ended()
	return 1
}

func TestMissingBinarySaysHowToBuildIt(t *testing.T) {
	t.Setenv(client.BinaryVariable, filepath.Join(t.TempDir(), "lab"))
	_, err := client.Start(t.Context(), client.Options{})
	if !errors.Is(err, client.ErrNoBinary) || !strings.Contains(err.Error(), "make lab") {
		t.Errorf("error is %v", err)
	}
}
