// SPDX-License-Identifier: Apache-2.0
// Browsers start no worker for a page that is opened from disk, and the site's search runs in one. There a hidden frame
// takes its place: it runs the worker's script, with what a worker offers to it.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const load = (address) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          script.src = new URL(address, document.baseURI).href;
          script.onload = done;
          script.onerror = failed;
          inside.document.body.append(script);
        });
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(url);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
