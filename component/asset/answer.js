// What is done with answers: the tab's title tells of one that ended behind.
const ENDED_MARK = "● ";
const ended = { isAwaited: false, isTold: false };

function noteEnd() {
  if (document.querySelector(`${TURN} p.phase`)) ended.isAwaited = true;
  else if (document.querySelector("[class*='st-key-last_actions_']")) {
    ended.isTold ||= ended.isAwaited;
    ended.isAwaited = false;
  }
  ended.isTold &&= document.hidden;
  const title = document.title.replace(ENDED_MARK, "");
  const told = ended.isTold ? ENDED_MARK + title : title;
  if (document.title !== told) document.title = told;
}

// Streamlit sets the title, too.
const titleChange = new MutationObserver(noteEnd);
listen("visibilitychange", noteEnd, false);
