// An in-memory server that speaks Redis' protocol, for Argo CD's cache where no redis-server is installed.
package main

import (
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: redis ADDRESS")
	}
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	// Its clock stands still unless it is told that time passes: entries would never expire.
	for second := time.Tick(time.Second); ; {
		select {
		case <-second:
			server.FastForward(time.Second)
		case <-ended:
			return
		}
	}
}
