// A page that is opened from a folder (file:) may not start a Worker: the site's search runs in a hidden frame instead.
(function () {
  "use strict";
  if (location.protocol !== "file:") {
    return;
  }

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentDocument;
      inside.open();
      const script = inside.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.addEventListener("load", () => this.begin());
      script.addEventListener("error", () => this.dispatchEvent(new Event("error")));
      inside.write("<!doctype html><html><head></head></html>");
      this.frame.contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.head.append(script);
      inside.close();
    }

    // What was sent before the script ran.
    begin() {
      const waiting = this.waiting;
      this.waiting = null;
      waiting.forEach((data) => this.postMessage(data));
    }

    postMessage(data) {
      if (this.waiting !== null) {
        this.waiting.push(data);
      } else {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      }
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker; // the search's script looks for the first name
})();
