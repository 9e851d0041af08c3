package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dashboard returns the URL of a dlo that the demo did not start.
func dashboard(getenv func(string) string) string {
	return cmp.Or(getenv("DLO_SERVER"), "http://"+defaultListen)
}

// runShop runs the services with a broker and a dlo that somebody else has started. Unlike show, it
// leaves its queues on the broker.
func runShop(ctx context.Context, p *program, path string) (failure error) {
	f, err := takeFolder(path)
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, f.remove()) }()
	b := &broker{url: p.getenv("DLO_AMQP_URL"), managedAt: p.getenv("DLO_MANAGEMENT_URL"), names: usualNames}
	if b.url == "" {
		return errors.New("the shop needs the URL of a broker in DLO_AMQP_URL")
	}
	if err := b.connect(); err != nil {
		return err
	}
	defer b.stop()
	o := &office{url: dashboard(p.getenv), client: &http.Client{Timeout: officeWait}}
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := await(starting, o.checkDraining); err != nil {
		return unlessDone(ctx, fmt.Errorf("dlo is not ready: %w", err))
	}
	if err := prepare(ctx, b); err != nil {
		return unlessDone(ctx, err)
	}
	return perform(ctx, p, f, b, o, story(b, o, "docker compose -p dlo-demo exec shop /usr/bin/demo fix"))
}

// forward passes the connections of a listener on to a dashboard, until ctx is done. Without users,
// dlo listens only on loopback, which nothing outside of its container reaches.
func forward(ctx context.Context, l net.Listener, dashboard string) error {
	defer l.Close()
	to, err := url.Parse(dashboard)
	if err != nil || to.Host == "" {
		return errors.New("DLO_SERVER is not a URL such as http://127.0.0.1:8672")
	}
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		from, err := l.Accept()
		if err != nil {
			return unlessDone(ctx, err)
		}
		go relay(from, to.Host)
	}
}

// relay copies the bytes of a connection to an address, and its answer back.
func relay(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		defer from.Close()
		io.Copy(from, to)
	}()
	io.Copy(to, from)
}
