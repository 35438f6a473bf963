package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startEtcd runs an etcd that nobody can reach over the network and that gives up durability for speed.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, string, error) {
	client := url.URL{Scheme: "unix", Path: filepath.Join(dir, "e.sock")}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(dir, "p.sock")}
	logger, err := etcdLogger(filepath.Join(dir, "etcd.log"))
	if err != nil {
		return nil, "", err
	}
	config := embed.NewConfig()
	config.Name = "lab"
	config.Dir = filepath.Join(dir, "etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.Name + "=" + peer.String()
	config.UnsafeNoFsync = true
	config.TickMs, config.ElectionMs = 10, 100
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, client.String(), nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, "", err
	case <-etcd.Server.StopNotify():
		etcd.Close()
		return nil, "", errors.New("stopped while starting")
	case <-ctx.Done():
		etcd.Close()
		return nil, "", context.Cause(ctx)
	}
}

func etcdLogger(file string) (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	config.OutputPaths, config.ErrorOutputPaths = []string{file}, []string{file}
	logger, err := config.Build()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return logger, nil
}
