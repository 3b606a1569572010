"""Tells by its wording whether a sentence forbids, sets a lasting rule, prefers, or chooses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from graph.core.remembered import remembered

WordKind = Literal["negation", "rule", "preference", "choice"]

# Where an English order begins; elsewhere "always" and "never" are mostly narrative.
_ORDER: Final = r"(?:^|[,;:—–(]\s?|\b(?:please|and|but|so|also|just)\s)"
# "In the report never name anyone", and no subject before it: "in the end we never met", "the buses never came".
_PLACED: Final = (
    r"^(?:in|for|on|at|during|with)\s(?:the|any|my|our|your|all|every)\s"
    r"(?:(?!(?:i|we|you|he|she|they|it|people|end)\s)[a-z'’-]+\s){1,4}?"
)
_NO_TALE: Final = r"(?!\w+ed\b|had\b|been\b|was\b|were\b|got\b|came\b|saw\b|went\b|mind\b)"
_NO_FORBIDDING: Final = r"(?! worry| forget| get me| stress| mind\b| bother)"
# "No tables" forbids; "No test today", "No reply yet" and "it ran, no errors" tell.
_NO_NEWS: Final = (
    r"(?!wait|one|matter|problem|worries|idea|way|doubt|luck|news|need|longer|rush|hurry|wonder|surprise|thanks?\b|it\b"
    r"|errors?\b|warnings?\b|failures?\b|issues?\b|repl|respons|answers?\b|difference|results?\b|signs?\b|trace|effect|match"
    r"|hits?\b|progress|clue|evidence|reason|choice|point|such|harm|offen[cs]e|sign\b|kidding|big\sdeal|pressure|objection)"
    r"(?![^.!?\n,;:(—–]{0,60}\b(?:today|tonight|yet|now|so\sfar|tomorrow|yesterday|since|this|was|were|is|are|has|have|had"
    r"|found|left|here|there|works?|worked|failed|happened|came|knows?)\b)"
)
# What goes before ", no X" in a list of wishes, and not in a report.
_NO_REPORT: Final = (
    r"(?![^.!?\n]{0,120}\b(?:was|were|is|are|has|have|had|there|there['’]s|it['’]s|got|found|ran|saw|came|said|says|know"
    r"|(?!need|embed|shed|bed|red|used\b)[a-z]{2,12}ed)\s[^.!?\n]{0,120}[,;]\s(?:and\s)?no\s)"
)
_NO_ORDER: Final = (
    rf"(?:^(?:ok(?:ay)?,?\s|and\s|also,?\s|but\s|please,?\s)?no\s{_NO_NEWS}\w"
    rf"|^{_NO_REPORT}[^.!?\n]{{1,100}}?(?:[,;:—–(]\s?|\s(?:and|but|also|with)\s)no\s{_NO_NEWS}\w|\balso\sno\s{_NO_NEWS}\w)"
)
# "nothing that writes", not "nothing that I know of"
_NOTHING: Final = (
    r"nothing\s(?:that\s(?!i\b|we\b|you\b|he\b|she\b|they\b|can\b|could\b|would\b|helps?\b|works?\b|worked\b)"
    r"|(?:with|over|above|beyond|outside|from|longer|more|older|bigger|spicy|but)\s)\w"
)
_LEAVE: Final = (
    rf"{_ORDER}(?:(?:leave|keep)\s[^.!?,;\n]{{1,40}}?\s(?:alone|untouched|unchanged|as[\s-]is|as\s(?:it|they)\s(?:is|are)|in\splace"
    r"|as\s(?:before|now))\b|leave\s(?:the|those|these|my|our|all|both|every)\s(?!house|room|office|flat|building|city|country|hotel|site)\w)"
)
# 1월 24일은 안 돼요, 안 되겠어요: who has no time forbids nothing.
_NO_TIME: Final = r"(?<![0-9]일[은는도])(?<![0-9]시[은는도])(?<![0-9]분[은는도])(?<![0-9]주[은는도])"
# 1월 10일 말고 1월 3일로 당겨 주세요: a change.
_NO_CHANGE: Final = (
    r"(?<![0-9][일시분원개명번호층])(?<![0-9][일시분원개명번호층]\s)(?<!지\s)말고\s"
    r"(?![^.!?\n]{0,40}?(?:[0-9]|당겨|당기|바꿔|바꾸|변경|옮겨|옮기|미뤄|미루|수정|고쳐|교체|정정))"
)
_ASKED_FOR: Final = r"[^.!?\n]{0,40}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합시다|해라|좋겠)"
# 번역은 안 넣어요, 서명은 안 할 거예요; not 비가 안 올 거예요.
_WONT: Final = (
    r"(?<![가-힣])안\s?(?:(?:넣어|써|적어|붙여|달아|보내|올려|알려|말해|바꿔|고쳐|건드려|지워|보여|밝혀|추가해|공유해|공개해"
    r"|언급해|사용해|포함해|서명해|합의해)요|(?:넣|적|붙이|알리|올리|바꾸|고치|지우)습니다|[씁합]니다|보냅니다"
    r"|(?!올\s|될\s|나올|걸릴|아플|생길|있을|클\s|좋을|늦을|팔릴|맞을|그럴)[가-힣]{1,4}\s?(?:거[예에]요|겁니다|게요|래요)"
    r"|[가-힣]{1,3}(?:려고요|려고\s?해요|려\s?합니다))"
    r"|지\s?않(?:을게요|겠습니다|겠어요|을래요|으려고)"
)
FORBIDS: Final = re.compile(
    r"절대(?:로)?[^.!?\n]{0,40}?(?:안|못|말|마|않|없|금지|싫|빼)"
    r"|(?<!까)지\s?(?:마(?:세요|십시오|시[고길기]?|[라요셔]|[라자]고)?(?=[\s.,!?~…)\"'’”]|$)"
    r"|말(?:아|고|것|기|자|라| 것))"
    rf"|(?:은|는|도|면|선|건){_NO_TIME}\s(?:절대(?:로)?\s)?안\s?(?:돼|되(?!겠|었)|됩)"
    r"|(?:하|되|쓰|가|넣)면\s?안"
    r"|(?:[은는을를도]\s(?:[^\s.!?]{1,12}\s){0,2}|(?<!에서)\s)빼\s?(?:주|고|줘|달|라)"
    r"|(?<![가-힣])(?:제외|금지|사양|불가)(?:하|해|로|입|예|이|[.!?]|$)|금물"
    r"|알레르기|알러지|못\s?먹|안\s?먹|(?<![가-힣])(?:피해|삼가)\s?(?:주|줘)|그만\s?(?:해|하)"
    r"|(?<![가-힣])못\s(?:와|옵니|온[다대]|오[세시는고]|올\s|가[요고는]|갑니|간[다대]|나[와가]요|들어[와가]요|참석)"
    r"|(?<![가-힣])못\s?(?:드[세시]|마셔|마시)"
    r"|없이는?\s[^.!?\n]{0,12}?(?:못\s?[하쓰내씁합]|안\s?(?:돼|되|됩)|쓸\s수\s없|할\s수\s없|불가)"
    r"|(?<![가-힣])못\s?하게\s?(?:해요|합니다|하세요|돼|되|해\s?주)"
    r"|(?:참석|출근|참여|이용|방문)(?:을|은|는)?\s?(?:못\s?(?:해|합|하[세시는고]|한[다대])|할\s수\s없)"
    rf"|(?:없이|않게|않도록|않았으면)\s{_ASKED_FOR}|않(?:게|도록)(?:요|만요)?(?=[\s.!~]*$)|{_NO_CHANGE}{_ASKED_FOR}|{_WONT}"
    r"|그대로\s?(?:두세요|둬|두고|놔|남겨|두시|유지해)"
    rf"|(?i:{_LEAVE}|{_ORDER}(?:(?:never|avoid|leave out|stop|no more|hands off|stay away from|keep away from"
    rf"|(?:do not|don['’]t){_NO_FORBIDDING})\s\w)|{_ORDER}{_NOTHING}"
    rf"|{_PLACED}(?:never|do not|don['’]t)\s{_NO_TALE}\w"
    r"|\b(?:can['’]t|cannot)\s(?!see|find|get|load|open|read|tell|think|run)[^.!?\n]{1,40}?\bmore\sthan\s(?:once|twice|[0-9])"
    r"|\b(?:must\snever|must\snot|mustn['’]t|not\sallowed|forbidden|off[-\s]limits|allergic|under\sno\scircumstances|no\slonger\sallowed)\b"
    rf"|\b(?:you|we|they|it)\sshould(?:n['’]t|\snot|\snever)\s|{_NO_ORDER}"
    r"|\bI\s(?:don['’]t|do not|can['’]t|cannot)\s(?:want\s(?!to)|like\s(?!(?:the|this|that|it|how)\b)|eat\b|drink\b)"
    r"|\b(?:can['’]t|cannot)\s(?:come|attend|make\sit|join|travel|eat|drink)\b(?!\s(?:up|work|across|out)\b)"
    r"|\b(?:can['’]t|cannot|may\snot)\s[^.!?\n]{1,40}?\bwithout\s\w"
    r"|\bwithout\s\w+[^.!?\n]{0,40}?\bplease\b)"
)
_APPROVAL: Final = r"(?:승인|결재|허락|동의|확인|검토)"
_PLEASE: Final = r"(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합니다|해야|할\s?것|답해|써)"
_DO: Final = (
    r"(?:log|use|write|put|keep|make|call|name|send|store|return|show|answer|reply|respond|print|format|run|read|query|save|add"
    r"|set|round|sort|test|raise|commit|deploy|build|count|render|cite|quote|spell|address|speak|change|touch|edit|merge"
    r"|translate|explain|contact|ask|refer\sto|phrase|list|number)"
)
RULES: Final = re.compile(
    rf"(?<![가-힣])(?:앞으로(?:는|도)?|(?:이제|지금|다음|오늘)부터(?:는|도)?|항상|언제나|반드시|매번|꼭|무조건|되도록|가급적|늘)\s(?!감사|고맙|성공|행복|건강|응원)[^.!?\n]{{0,60}}?{_PLEASE}"
    rf"|(?:마다|모든|먼저|전에)\s[^.!?\n]{{0,40}}?{_APPROVAL}[^.!?\n]{{0,12}}?(?:받아야|있어야|해야|필요)"
    r"|(?:답변?|대답|응답|메시지|글|문서|서류|메일|보고서)마다\s[^.!?\n]{0,40}?(?:주세요|줘|해요|하세요|부탁)"
    r"|(?:모든|매)\s(?:답변?|대답|응답|메시지|글|문서|서류|메일|보고서)[가-힣]{0,3}\s[^.!?\n]{0,40}?(?:주세요|줘|해요|하세요|부탁)"
    r"|(?:승인|결재|허락|동의)[을를이가도]?\s(?:꼭\s)?(?:받아야|있어야|필요)"
    r"|(?:통해|통하여|거쳐)서?만\s[^.!?\n]{0,20}?(?:하|합|해|주|보내|연락|전달|받)"
    rf"|(?:{_APPROVAL}|허가|접근|입력|출입)[은는]\s[^.!?\n]{{1,30}}?만\s?(?:하[고며세]|할|합|해|가능|됩|돼|되)"
    r"|(?<![가-힣])비밀(?:이에요|예요|입니다|이야|이니|로\s?(?:해|하|부탁|둬|두|지켜)|[은을]?\s?(?:지켜|유지))|대외비|(?:우리|저희)끼리만"
    r"|라고만\s?(?:써|쓰|적|부르|불러|표기|해|하|말)|라고\s?(?:써|적어|불러|표기해)\s?(?:주|줘)"
    r"|[가-힣]로만\s?(?:써|쓰|적|답|말|대화|해|하|할|합|보내|연락|진행|통보|부탁|표기|주세요|줘)"
    r"|(?:만|까지만)\s(?:써|적어|넣어|사용해|쓰|고쳐|건드려)\s?(?:주|줘|세요|요(?![가-힣]))"
    r"|[가-힣]\s대신\s[^.!?\n]{1,30}?(?:으로|로|를|을)\s[^.!?\n]{0,12}?(?:주세요|줘|주십시오)|(?:존댓말|반말|경어|높임말)[^.!?\n]{0,12}?(?:주세요|줘|해요|하세요|부탁|써)"
    r"|필수(?:예요|이에요|입니다|[.!]|$)"
    r"|(?<![가-힣])(?:짧|쉽|길|크|작|간단하|간결하|정중하|부드럽|친절하|자세하|정확하|가볍|담백하|공손하|따뜻하|차분하)게(?:요|만요)?(?=[.!~]*$)"
    r"|(?:답|말투|대답|어조|문체)[변은을는]{0,2}\s[^.!?\n]{0,20}?(?:게|로)\s?(?:해|써|부탁|답|말|적)"
    rf"|(?i:\b(?:from (?:now|here|this point|today) on(?:wards?)?|going forward|henceforth)\b"
    rf"|{_ORDER}(?:always|make sure|be sure to|every time you)\s(?!\w+ing\b)|{_PLACED}always\s{_NO_TALE}\w"
    r"|\b(?:we|you|they|everyone|everybody|guests)\smust\s[^.!?\n]{1,60}?\bby\s(?:[0-9]|noon|midnight)"
    r"|\b(?:contact|call|reach|talk\sto|write\sto|e?mail|message)\s[^.!?\n]{1,40}?\bonly\s(?:through|via|by)\b"
    rf"|{_ORDER}only\s[^.!?\n]{{1,40}}?\s(?:may|can|should|must|(?:is|are)\sallowed)\b"
    rf"|{_ORDER}only\s(?:ever\s)?{_DO}\s|{_ORDER}{_DO}\s[^.!?\n]{{0,60}}?\bonly\b(?!\s(?:if|when|then|once|one)\b)"
    r"|(?:^|[,;:—–]\s)(?:and\s|but\s)?only\s(?!if|when|then|once|one|two|three|[0-9]|a\b|an\b|because|after|the\s(?:first|second|last))"
    r"(?![^.!?\n]{0,60}\b(?:is|are|was|were|has|have|had|can|could|will|would|did|does|do|works?|worked|fail(?:s|ed)|matters?"
    r"|happen(?:s|ed)|remains?|needs?|takes?|took|shows?|came|comes|got|gets|seems?|runs?|ran|knows?|left|changed)\b)\w"
    r"|\b(?:this|that|it|which|these|those)(?:['’]s|\sis|\sare|\sstays?)\s(?:all\s|also\s|strictly\s)?(?:confidential|secret|private|off\sthe\srecord|between\sus)\b"
    rf"|{_ORDER}{_DO}\s[^.!?\n]{{1,60}},\s(?:and\s)?not\s(?!yet|sure|only|that|because|so\b|too|really|\$?[0-9])\w"
    rf"|{_ORDER}(?:answer|reply|respond)\s(?:to\s)?(?:me\s)?(?:in|with|briefly|formally|as)\b|\b(?:call|address)\sme\s(?!back|when|if|at\b|later)\w"
    rf"|{_ORDER}keep\s(?!\w+ing\b|in\smind|me\b|up\b|calm|an\seye|it\sup|track|at\sit)\w"
    rf"|{_ORDER}(?:ask|check\swith|tell|warn)\s(?:me|us)\s(?:first|before)\b|\b(?:until|unless)\s(?:I|we)\s(?:say|tell|ask)\b"
    r"|^(?:every|each|all)\s[^.!?\n]{1,40}?\s(?:must|should|has\sto|have\sto|needs?\sto|ends?\swith|starts?\swith)\b"
    r"|,\salways(?=[.!]*$)|\b(?:throughout|everywhere)(?=[.!]*$)|\b(?:anything|everything|all)\s(?:but|except)\s(?:the|my|our|for)\b"
    r"|\bI\s(?:only\s(?:want|need|accept|eat|drink|use)|(?:want|need)\s(?:only\b|(?:all\s|your\s)?(?:answers|replies)\b))|^(?:all|every)\s[^.!?\n]{1,40}\sin\s\w+,\splease\b"
    r"|\bI(?:['’]d|\swould)\s(?:like|want|need)\syou\sto\s(?:always|never|avoid|keep|only|use|stop)\b|\brefer\sto\sme\sas\b"
    r"|(?<!\bI\s)\bmust\s(?:stay|remain|keep|always|only|use|have\s(?:an?|the|at\sleast|two|both|its)\b)"
    r"|(?<!\bI\s)\b(?:must|needs?\sto|has\sto|have\sto)\s(?:also\s|always\s|first\s)?(?:be\s)?"
    r"(?:approve|sign|confirm|review|check|authori[sz]e|clear|told|asked|copied)\w{0,3}\b[^.!?\n]{0,60}?"
    r"\b(?:every|each|all|any|before|first)\b)"
)
# What was better than before tells, 어제보다 나아요; and so does what is good by itself, 매출이 더 좋아요.
_NO_TASTE: Final = (
    r"(?<!어제)(?<!작년)(?<!지난주)(?<!지난달)(?<!평소)(?<!예상)(?<!생각)(?<!기대)"
    r"(?<!예전)(?<!이전)(?<!전)(?<!그때)(?<!오늘)"
)
_OWN_GOOD: Final = (
    r"(?:성능|매출|날씨|결과|상태|기분|컨디션"
    r"|성적|품질|반응|효과|점수|수익|실적|마음|경치|평|속)[이가은도]\s(?:더\s|훨씬\s)?"
)
_GOOD: Final = (
    r"(?:좋(?:아(?!졌|지|질)|습니다|겠|을\s?(?:것|듯|거)|네요|더라)|편(?:해(?!졌|지)|합니다|하[네더고]|한)|나(?:아요|을\s?(?:것|듯|거)|은\s(?:것|거))"
    r"|낫(?:습|네|겠|[다지])|선호|마음에\s?들|끌[려리립])"
)
PREFERS: Final = re.compile(
    rf"(?<=[가-힣A-Za-z0-9'’\"”」]){_NO_TASTE}보다(?:는|도)?\s(?!{_OWN_GOOD})[^.!?\n]{{0,40}}?(?<!성능이\s)(?<!매출이\s)(?<!반응이\s){_GOOD}"
    r"|선호(?:해|합|하[고며는지]|함|한다)|취향(?:이에요|입니다|이야|이라|은\s)|(?:을|를|건|은|는|도)\s(?:더\s|정말\s|제일\s|가장\s|훨씬\s|아주\s)?(?:좋아|싫어)(?:해요|합니다|하[고는거지])"
    rf"|[은는이가도]\s싫(?:어요|습니다|네요|거든요)|(?:는|한|은|인|운)\s(?:게|것이|편이|쪽이|거|걸)\s(?:더\s|훨씬\s|제일\s|가장\s)?{_GOOD}"
    rf"|[가-힣A-Za-z0-9](?<!날씨)(?<!기분)(?<!마음)(?<!상태)(?<!결과)(?:이|가)\s(?:더|훨씬|제일|가장)\s{_GOOD}"
    r"|(?:으면|다면|이면|라면|했으면|였으면)\s(?:더\s|참\s|정말\s)?(?:좋겠|해요(?=[.!~]*$)|합니다(?=[.!~]*$)|싶)"
    r"|(?i:\b(?:I|we|my\s\w+)(?:['’]d|['’]ve|\swould|\shave)?\s(?:\w+ly\s|also\s|still\s|always\s|much\s|do\s|tend\sto\s|kind\sof\s)?prefer(?:s|red)?\b"
    r"|\b(?:my|our)\s(?:\w+\s)?(?:preference|taste|favou?rite)\b|\b(?:preferably|ideally)\b|\bI\slean(?:ing)?\stoward|\bI\sfind\s[^.!?\n]{1,40}?\b(?:easier|better|nicer|handier)\b|\bI\scan(?:['’]t|not)\sstand\b|\b(?:I|we)(?:['’]d|\swould)\s(?:much\s)?(?:rather|sooner)\b"
    r"|\b(?:I|we)\s(?:\w+ly\s|also\s|generally\s)?(?:like|love|enjoy|hate|dislike)\s[^.!?\n]{1,60}?\b(?:better|more\sthan|best|the\smost|the\sleast)\b"
    r"|\bI\s(?:really\s|also\s|generally\s|usually\s|absolutely\s)?(?:like|love|enjoy|hate|dislike)\s(?!it\b|this\b|that\b|the\b|how\b|what\b|where\b|your?\b|to\s(?:ask|say|bother|break|admit|know|see|hear|interrupt)\b|when\b)\w"
    r"|\bI(?:['’]m|\sam)\s(?:\w+\s)?(?:more\scomfortable|happier|partial\sto|inclined\sto|leaning\stoward|an?\s(?:big\s|huge\s)?fan\sof|not\s(?:an?\s)?(?:big\s)?fan)\b"
    r"|\b(?:is|are|looks?|tastes?|feels?)\s(?:much\s)?(?:nicer|tastier|prettier|cosier)\sthan\s(?!before|expected|last|usual|ever|I\b)"
    r"|\b(?:works?|suits?|is|are)\s(?:me\s)?(?:better|best|easier|easiest|nicer)\s(?:for\s(?:me|us)|to\sme)\b|\bsuits?\sme\s(?:better|best|more)\b"
    rf"|{_ORDER}{_DO}\s[^.!?\n]{{1,60}}?\b(?:rather\sthan|instead\sof|over)\s\w|\b(?:I|we)(?:['’]d|\swould)?\s[^.!?\n]{{1,40}}\brather\sthan\b)"
)
# An option: 2번, B안, 두 번째, 그쪽.
_OPTION: Final = (
    r"(?:[0-9]{1,2}번(?:안|째)?|[A-Z](?:안|\s?옵션|형|타입)?|(?:첫|두|세|네)\s?번째(?:\s?(?:안|것|걸|방법|방식|옵션))?"
    r"|[가-힣]+\s?(?:(?<![제동])안|쪽|방식|방법|옵션|버전|기준|플랜|코스|모델|요금제)|그걸|이걸|저걸|그쪽|이쪽|그거|이거|원래대)"
)
_DECIDE: Final = (
    r"(?:할게요|할께요|하겠습니다|하겠어요|할래요|하죠|하자|합시다|갈게요|가겠습니다|가죠|가자|갑시다|갈래요|가시죠|하시죠|정했|정할게|정하[죠자겠]|결정|확정"
    r"|선택|고를게|골랐|고르겠|진행할|진행하[겠죠자]|할\s거|갈\s거|하려고\s?(?:요|해|합)|가려고\s?(?:요|해|합)|하는\s?(?:걸|것으)로|가는\s?(?:걸|것으)로|바꿀게|바꾸[겠죠자])"
)
CHOOSES: Final = re.compile(
    rf"(?<![가-힣A-Za-z0-9]){_OPTION}(?:으로|로|을|를)?\s?(?:{_DECIDE}|(?:진행)?해\s?(?:주|줘)|부탁|주세요|할래|택)"
    rf"|[가-힣A-Za-z0-9](?:으로|로|[은는을를도])\s(?:그냥\s|일단\s|최종\s)?{_DECIDE}(?![가-힣]*(?:까요|나요|는데|지\s|으면|하면))"
    r"|기로\s?(?:했(?!던|었|는데|대|다고|지만)|해요|하죠|합시다|하자|하겠|할게|결정|정했|정하|확정|합니다|함(?![가-힣]))"
    r"|(?<![가-힣])(?!그대로|따로|정말로|진짜로|별로|서로|바로|새로|실제로|주로|대체로|참고로|절대로|앞으로|말로|스스로)[가-힣A-Za-z0-9][가-힣A-Za-z0-9\s]{0,24}(?:으로|로)요?(?=[.!~]*$)(?<=요)"
    r"|(?:취소|보류|포기|철회|생략|채택|선택|확정|유지|제외|진행|폐기|결정|탈퇴|해지|환불)(?:할게요|하겠|하죠|합시다|하자|할래요|했어요|했습니다|합니다)"
    r"|(?<![가-힣])(?:접을게요|접죠|접겠|빼죠|빼겠|뺄게요|버릴게요|버리죠|관둘게요|그만둘게요|둘게요|살게요|고를게요|쓸게요|씁시다|쓰죠)"
    rf"|(?i:\blet['’]?s\s(?!see\b|say\b|start\sover|talk\b|look\b|think\b|not\s(?:worry|forget)|move\son|continue|try\sto)(?:\w+\s)?(?:go|use|take|drop|keep|skip|pick|choose|do|ship|stick|stay|have|make|cancel|remove|book|adopt|stop|switch|settle|call)\b"
    r"|\b(?:I|we)(?:['’]ll|\swill|['’]re\sgoing\sto|\sare\sgoing\sto|['’]m\sgoing\sto)\s(?:just\s|then\s)?(?:go\s(?:with|for)|take\s(?!a\slook|care|it\sfrom)|use\b|pick|choose|stick\s(?:with|to)|keep\b|drop\b|skip\b|cancel\b)"
    r"|\b(?:I|we)(?:['’]ve|\shave)?\s(?:\w+ly\s)?(?:decided|chose|chosen|picked|settled\son|opted|agreed\s(?:on|to))\b|\bwe(?:['’]re|\sare)\snot\sgoing\sto\b|\bI\swon['’]t\s(?:use|take|sign|pay|accept|go|buy|do)\b|\b(?:my|our|the)\s(?:final\s)?(?:decision|choice|pick)\s(?:is|:)|^decision:"
    rf"|(?:^|^(?:ok(?:ay)?|yes|yeah|fine|right|then|so|alright|good|no|please)[,.]?\s|[,;—–]\s(?:so\s|then\s)?)(?:then\s|so\s|please\s|just\s)?"
    r"(?:go\s(?:ahead\s)?(?:with|for)\s\w|stick\s(?:with|to)\s\w|(?:take|pick|choose|drop|skip|cancel|scrap|ditch|remove|adopt|switch\sto|revert\sto)\s"
    r"(?!a\slook|a\sbreak|your\stime|care|note|me\b|it\seasy|a\smoment|over|into|any\s|whatever|this\sas|these\s|between|from|it\b|an?\s(?:example|number|word))\w)"
    rf"|^(?:ok(?:ay)?|yes|yeah|fine|right|then|so|alright|good)[,.]?\s(?:then\s)?use\s\w|^[^.!?\n]{{1,40}}\sit\sis(?=[.!]*$)"
    r"|^(?:ok(?:ay)?,?\s|yes,?\s)?(?:option|plan|variant|version|choice)\s[A-Z0-9]{1,2}\b[^?\n]{0,30}$|^(?:the\s(?:first|second|third|last|latter|former)(?:\sone|\soption)?|[A-Z])(?:,?\s(?:please|then))?(?=[.!]*$)"
    r"|^(?!.{0,6}\bsince)[^.!?\n]{1,40},\sthen(?=[.!]*$))"
)
# A question about a prohibition forbids nothing: "what did I say must never be used?".
_ASKS: Final = re.compile(
    r"(?:라고|다고|자고|하게)\s?(?:말씀)?(?:한|했|하신|하셨|말한|말했)[^.!?。！？\n]{0,60}[?？]$"
    r"|(?i:^(?:(?:and|so|but|exactly)\s)?(?:which|what|who|why)\b[^\n]*[?？]$)"
)
_FIRST_PERSON: Final = re.compile(r"알레르기|알러지|못\s?먹|안\s?먹|(?i:allergic|\bI\s)")
# Wording of summaries. In a user's message these words alone make no fact: "never" may be narrative there.
_TOLD: Final = re.compile(
    r"절대|금지|제외|항상|언제나|반드시|무조건|앞으로는|규칙|안\s?(?:돼|되|됩|된|됨)|(?<![가-힣])안 [가-힣]"
    r"|지\s?(?:마(?:세요|십시오|라|요|시고|셔)?(?=[\s.,!~…]|$)|말(?:아|고|자|것|기|라)|않기|않아야)"
    r"|(?i:(?:^|[,;:.!—-]\s*|\b(?:please|and|but|so)\s+)(?:just\s+)?(?:do not|don['’]t)\s"
    r"|(?:^|[;:)]\s+|\b(?:please|and|but|you)\s+)(?:never|always|avoid)\s|\bat all times\b"
    r"|\buser\b[^.!?\n]{0,40}?\b(?:never|always|not to|does not|doesn['’]t|avoid|avoids|forbids)\b"
    r"|\bmust(?:n['’]t)?\s(?!be\b|have\b)|\b(?:shall|should)(?:\s+not|n['’]t)\s(?!be\b)"
    r"|\b(?:not allowed|forbid(?:den|s)?|forbade|prohibit(?:ed|s)?|under no circumstances)\b"
    r"|\b(?:i|we)\s+(?:do not|don['’]t|never)\s+(?:want|like|eat|drink|use|accept|allow)\b)"
)
# What tells whoever summarises this chat what to write: no word of the user on the answers.
_TO_SUMMARISER: Final = re.compile(
    r"(?:대화|채팅|세션|위\s?내용)[를을의]?\s[^.!?\n]{0,20}?요약|요약(?:문|본|록)?(?:에서|에(?:는|도)?\s|할\s?때|하는\s(?:AI|모델|사람|쪽|도구|시스템)|자(?:는|에게|가)|\s?시에)"
    r"|(?:AI|인공지능|모델|어시스턴트|챗봇|요약기)(?:는|에게|께서는|라면)\s[^.!?\n]{0,200}?(?:시오|할\s것|하라|마라|말\s?것)"
    r"|(?i:\bsummari[sz]er\b|\b(?:when|while|if|whoever|anyone|who|whatever|before|AI|assistant|model|bot)\b[^.!?\n]{0,30}?\bsummari[sz](?:es?|ing)\b"
    r"|\b(?:in|from|of|into|to)\s(?:the|any|your|this|every|all)\s(?:\w+\s)?summar(?:y|ies)\b"
    r"|\b(?:the|any|an|dear)\s(?:AI|assistant|language\smodel|LLM|chatbot)\b[^.!?\n]{0,60}?\b(?:must|should|shall|please|omit|ignore|disregard|is\sto|are\sto)\b"
    r"|\b(?:ignore|disregard|forget)\s(?:all\s|any\s)?(?:the\s|your\s|of\sthe\s)?(?:previous|prior|above|earlier)\b)"
)
_QUESTION: Final = re.compile(r"[?？]\s*$|(?:까요|나요|을까|할까)[.!~\s]*$")
_LAST_COMMA: Final = re.compile(r",\s[^,]*$")


PATTERNS: Final[Mapping[WordKind, re.Pattern[str]]] = {
    "negation": FORBIDS,
    "rule": RULES,
    "choice": CHOOSES,
    "preference": PREFERS,
}
"""What tells the kind of a sentence; the first that matches counts."""


@remembered
def kind_of(sentence: str) -> WordKind | None:
    """Returns what kind of word of the user a sentence is; None for one that tells or asks.

    Who asks what was forbidden forbids nothing, and who asks about an option chooses none. What tells a summariser
    what to write is none either.
    """
    if not _WORDS.search(sentence):
        return None
    for kind, pattern in PATTERNS.items():
        is_order = kind in ("negation", "rule")
        is_question = _QUESTION.search(sentence)
        said = _LAST_COMMA.sub("", sentence) if is_question and not is_order else sentence
        found = None if is_question and said == sentence and not is_order else pattern.search(said)
        if found is None or _TO_SUMMARISER.search(sentence):
            continue
        return None if _ASKS.search(sentence) and not _FIRST_PERSON.search(found.group()) else kind
    return None


# Rows of numbers, of which data has thousands, say nothing of the kind.
_WORDS: Final = re.compile(r"[가-힣]|[A-Za-z]{2}")
# What is longer is no sentence that somebody said.
LONGEST_SENTENCE: Final = 2_000


def is_rule(sentence: str) -> bool:
    """Returns True for a prohibition or a rule, in a user's or a summary's wording."""
    said = sentence[:LONGEST_SENTENCE]
    return bool(_WORDS.search(said)) and any(pattern.search(said) for pattern in (FORBIDS, RULES, _TOLD))
