package main

import (
	"flag"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcd runs a single member whose data need not survive the machine.
func etcd(args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	data := flags.String("data-dir", "", "where the data is kept")
	listen := flags.String("listen-client-urls", "http://127.0.0.1:2379", "where clients connect")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := url.Parse(*listen)
	if err != nil {
		return err
	}
	// There are no peers, but the member wants an address for them.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}

	config := embed.NewConfig()
	config.Dir = *data
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer member.Close()
	select {
	case <-interrupted():
		return nil
	case err := <-member.Err():
		return err
	}
}
